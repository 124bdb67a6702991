#include "base/crypto/hmac.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace muniment {
namespace {

struct MacFree {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using Mac = std::unique_ptr<EVP_MAC, MacFree>;
using MacContext = std::unique_ptr<EVP_MAC_CTX, MacFree>;

void require_mac(bool done) {
  if (!done) std::abort();  // out of memory, or an OpenSSL without HMAC-SHA-256
}

// One context for each thread: the lookup in OpenSSL's providers costs three times as much as the HMAC of a short
// message, and the append thread computes one before each batch.
EVP_MAC_CTX* prepared() {
  thread_local const MacContext context = [] {
    const Mac mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    require_mac(mac != nullptr);
    MacContext made(EVP_MAC_CTX_new(mac.get()));
    std::array digest{'S', 'H', 'A', '2', '5', '6', '\0'};
    const std::array parameters{OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
                                OSSL_PARAM_construct_end()};
    require_mac(made != nullptr && EVP_MAC_CTX_set_params(made.get(), parameters.data()) == 1);
    return made;
  }();
  return context.get();
}

}  // namespace

Hash hmac_sha256(std::string_view key, std::initializer_list<std::string_view> parts) {
  EVP_MAC_CTX* const mac = prepared();
  Hash hash{};
  std::size_t size = 0;
  require_mac(EVP_MAC_init(mac, reinterpret_cast<const unsigned char*>(key.data()), key.size(), nullptr) == 1);
  for (const std::string_view part : parts)
    require_mac(EVP_MAC_update(mac, reinterpret_cast<const unsigned char*>(part.data()), part.size()) == 1);
  require_mac(EVP_MAC_final(mac, hash.data(), &size, hash.size()) == 1 && size == hash.size());
  return hash;
}

bool equal_hashes(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace muniment
