#include "base/hmac.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>
#include <string>

namespace muniment {

Hash hmac_sha256(std::string_view key, std::initializer_list<std::string_view> parts) {
  std::string message;
  for (const std::string_view part : parts) message += part;
  Hash hash{};
  unsigned size = 0;
  const unsigned char* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                                   hash.data(), &size);
  if (made == nullptr || size != hash.size()) std::abort();  // out of memory
  return hash;
}

bool equal_hashes(std::string_view a, std::string_view b) { return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace muniment
