#include "base/crypto/git_object.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <memory>

#include "base/crypto/openssl.hpp"
#include "base/crypto/sha256.hpp"

namespace muniment {

std::string git_object_id(std::string_view type, std::string_view content, std::size_t digits) {
  std::string head = fmt::format("{} {}", type, content.size());
  head.push_back('\0');
  if (digits != git_sha1_digits) return to_hex(sha256({head, content}));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::string id(git_sha1_digits / 2, '\0');
  const bool done = context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr) == 1 &&
                    EVP_DigestUpdate(context.get(), head.data(), head.size()) == 1 &&
                    EVP_DigestUpdate(context.get(), content.data(), content.size()) == 1 &&
                    EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(id.data()), nullptr) == 1;
  require_openssl(done, "compute SHA-1");
  return to_hex(id);
}

}  // namespace muniment
