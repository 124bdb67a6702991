#include "base/crypto/ed25519.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/crypto/openssl.hpp"
#include "base/crypto/sha256.hpp"

namespace muniment {

struct PkeyFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Pkey = std::unique_ptr<EVP_PKEY, PkeyFree>;

namespace {

struct ContextFree {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, ContextFree>;

const unsigned char* bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

struct SigningKey::Key {
  Pkey pkey;
};

SigningKey::SigningKey(std::unique_ptr<Key> key) : key_(std::move(key)) {}
SigningKey::~SigningKey() = default;
SigningKey::SigningKey(SigningKey&&) noexcept = default;
SigningKey& SigningKey::operator=(SigningKey&&) noexcept = default;

SigningKey SigningKey::generate() {
  Seed seed;
  random_bytes(seed.data(), seed.size());
  SigningKey key = from_seed(seed);
  OPENSSL_cleanse(seed.data(), seed.size());
  return key;
}

SigningKey SigningKey::from_seed(const Seed& seed) {
  Pkey pkey(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  require_openssl(pkey != nullptr, "make an Ed25519 key");
  return SigningKey(std::make_unique<Key>(Key{std::move(pkey)}));
}

Seed SigningKey::seed() const {
  Seed seed;
  std::size_t size = seed.size();
  require_openssl(EVP_PKEY_get_raw_private_key(key_->pkey.get(), seed.data(), &size) == 1, "read an Ed25519 key");
  return seed;
}

PublicKey SigningKey::public_key() const {
  PublicKey key;
  std::size_t size = key.size();
  require_openssl(EVP_PKEY_get_raw_public_key(key_->pkey.get(), key.data(), &size) == 1, "read an Ed25519 key");
  return key;
}

Signature SigningKey::sign(std::string_view message) const {
  const Context context(EVP_MD_CTX_new());
  Signature signature;
  std::size_t size = signature.size();
  require_openssl(context != nullptr &&
                      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_->pkey.get()) == 1 &&
                      EVP_DigestSign(context.get(), signature.data(), &size, bytes(message), message.size()) == 1,
                  "sign with Ed25519");
  return signature;
}

bool verify_signature(const PublicKey& key, std::string_view message, std::string_view signature) {
  if (signature.size() != Signature{}.size()) return false;
  const Pkey pkey(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.data(), key.size()));
  const Context context(EVP_MD_CTX_new());
  return pkey != nullptr && context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, pkey.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytes(signature), signature.size(), bytes(message), message.size()) == 1;
}

}  // namespace muniment
