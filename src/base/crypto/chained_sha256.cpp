#include "base/crypto/chained_sha256.hpp"

// EVP, which other code uses, hides the state; these older functions expose it.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/crypto/openssl.hpp"

namespace muniment {
namespace {

constexpr std::size_t hash_words = 8, word_bytes = 4;

}  // namespace

struct ChainedSha256::State {
  SHA256_CTX context;
};

ChainedSha256::ChainedSha256() : state_(std::make_unique<State>()) {
  require_openssl(SHA256_Init(&state_->context) == 1, "continue SHA-256");
}

ChainedSha256::ChainedSha256(const Hash& chaining_value, std::uint64_t bytes_before) : ChainedSha256() {
  SHA256_CTX& context = state_->context;
  for (std::size_t i = 0; i < hash_words; ++i) {
    context.h[i] = 0;
    for (std::size_t byte = 0; byte < word_bytes; ++byte)
      context.h[i] = context.h[i] << 8 | chaining_value[i * word_bytes + byte];
  }
  context.Nl = static_cast<SHA_LONG>(bytes_before << 3);  // in bits, in two halves
  context.Nh = static_cast<SHA_LONG>(bytes_before >> 29);
}

ChainedSha256::~ChainedSha256() = default;

void ChainedSha256::update(std::string_view bytes) {
  require_openssl(SHA256_Update(&state_->context, bytes.data(), bytes.size()) == 1, "continue SHA-256");
}

Hash ChainedSha256::chaining_value() const {
  require_openssl(state_->context.num == 0, "continue SHA-256");
  Hash value;
  for (std::size_t i = 0; i < value.size(); ++i) {
    value[i] = static_cast<std::uint8_t>(state_->context.h[i / word_bytes] >> (8 * (word_bytes - 1 - i % word_bytes)));
  }
  return value;
}

Hash ChainedSha256::finish() {
  Hash hash;
  require_openssl(SHA256_Final(hash.data(), &state_->context) == 1, "continue SHA-256");
  return hash;
}

}  // namespace muniment
