#include "base/crypto/sha256.hpp"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <cstring>

#include "base/crypto/openssl.hpp"

namespace muniment {

struct DigestFree {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Digest = std::unique_ptr<EVP_MD_CTX, DigestFree>;

namespace {

// Cached: fetching searches OpenSSL's providers, which costs more than hashing a short text.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  require_openssl(algorithm != nullptr, "fetch SHA-256");
  return algorithm;
}

Digest make_digest() {
  Digest digest(EVP_MD_CTX_new());
  require_openssl(digest != nullptr, "make a digest context");
  return digest;
}

void start(EVP_MD_CTX* digest) {
  require_openssl(EVP_DigestInit_ex2(digest, sha256_algorithm(), nullptr) == 1, "start SHA-256");
}

void add(EVP_MD_CTX* digest, std::string_view bytes) {
  require_openssl(EVP_DigestUpdate(digest, bytes.data(), bytes.size()) == 1, "continue SHA-256");
}

Hash end(EVP_MD_CTX* digest) {
  Hash hash;
  require_openssl(EVP_DigestFinal_ex(digest, hash.data(), nullptr) == 1, "finish SHA-256");
  return hash;
}

// RAND_bytes takes locks and costs about a microsecond, and every append needs a salt. Each thread has its own pool. A
// forked child must not return the same bytes as its parent.
class RandomPool {
 public:
  void take(std::uint8_t* out, std::size_t size) {
    if (available_ < size || owner_ != getpid()) refill();
    std::uint8_t* const from = pool_.data() + pool_.size() - available_;
    std::memcpy(out, from, size);
    std::memset(from, 0, size);
    available_ -= size;
  }

  static constexpr std::size_t bytes = 8192;

 private:
  void refill() {
    require_openssl(RAND_bytes(pool_.data(), static_cast<int>(pool_.size())) == 1, "give random bytes");
    available_ = pool_.size();
    owner_ = getpid();
  }

  std::array<std::uint8_t, bytes> pool_{};
  std::size_t available_ = 0;
  pid_t owner_ = 0;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Hash sha256(std::initializer_list<std::string_view> parts) {
  thread_local const Digest digest = make_digest();
  start(digest.get());
  for (std::string_view part : parts) add(digest.get(), part);
  return end(digest.get());
}

struct Sha256::Context {
  Digest digest = make_digest();
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { start(context_->digest.get()); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) { add(context_->digest.get(), bytes); }

Hash Sha256::finish() {
  const Hash hash = end(context_->digest.get());
  start(context_->digest.get());
  return hash;
}

void random_bytes(std::uint8_t* out, std::size_t size) {
  if (size > RandomPool::bytes / 8) {
    require_openssl(RAND_bytes(out, static_cast<int>(size)) == 1, "give random bytes");
    return;
  }
  thread_local RandomPool pool;
  pool.take(out, size);
}

Salt random_salt() {
  Salt salt;
  random_bytes(salt.data(), salt.size());
  return salt;
}

std::string_view view(const Hash& hash) { return {reinterpret_cast<const char*>(hash.data()), hash.size()}; }

std::string to_hex(std::string_view bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]);
    const int low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

std::optional<Hash> hash_from_hex(std::string_view text) {
  Hash hash;
  if (text.size() != hash.size() * 2) return std::nullopt;
  if (text.find_first_of("ABCDEF") != std::string_view::npos) return std::nullopt;
  const auto bytes = from_hex(text);
  if (!bytes) return std::nullopt;
  std::memcpy(hash.data(), bytes->data(), hash.size());
  return hash;
}

}  // namespace muniment
