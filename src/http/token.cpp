#include "http/token.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"

namespace muniment::http {

Status make_token_file(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return success();
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return file_error("making", folder, errno);
  std::string bytes(32, '\0');
  random_bytes(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  return write_file_durably(path, to_hex(bytes) + "\n");
}

Status check_private_file(std::string_view setting, const std::string& path, mode_t others, std::string_view remedy) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || (about.st_mode & others) == 0) return success();
  return Error(Errc::denied,
               fmt::format("{} = \"{}\": other users may read it. Run: chmod {} {}", setting, path, remedy, path));
}

Result<std::string> read_token_file(std::string_view setting, const std::string& path) {
  constexpr std::size_t line_end_bytes = 2;
  RETURN_IF_ERROR(check_private_file(setting, path, 077, "600"));
  ASSIGN_OR_RETURN(std::string token, read_file(path, limits::http_token_bytes_max + line_end_bytes));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.size() < limits::http_token_bytes_min || token.size() > limits::http_token_bytes_max) {
    return Error(Errc::invalid_argument,
                 fmt::format("{} = \"{}\": the token has {} bytes, expected {} to {}. "
                             "Make one: openssl rand -hex 32",
                             setting, path, token.size(), limits::http_token_bytes_min, limits::http_token_bytes_max));
  }
  return token;
}

}  // namespace muniment::http
