// Reads and checks the http_* settings, the token and the certificate files.
#include "daemon/mcp/http_settings.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/config/listen_address.hpp"
#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"

namespace muniment::daemon {
namespace {

// Clients run as the daemon's user, because only that user can read the token, but without an administrator's rights.
gateway::Caller caller_with_token() {
  gateway::Caller caller;
  caller.uid = ::geteuid();
  caller.actor = fmt::format("uid:{}", caller.uid);
  return caller;
}

Status make_token(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return success();
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return file_error("making", folder, errno);
  std::string bytes(32, '\0');
  random_bytes(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  return write_file_durably(path, to_hex(bytes) + "\n");
}

// `others` are the forbidden mode bits of the file.
Status check_private(std::string_view key, const std::string& path, mode_t others, std::string_view remedy) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || (about.st_mode & others) == 0) return success();
  return Error(Errc::denied,
               fmt::format("{} = \"{}\": other users may read it. Run: chmod {} {}", key, path, remedy, path));
}

Result<std::string> read_token(const std::string& path) {
  constexpr std::size_t line_end_bytes = 2;
  RETURN_IF_ERROR(check_private("http_token_file", path, 077, "600"));
  ASSIGN_OR_RETURN(std::string token, read_file(path, limits::http_token_bytes_max + line_end_bytes));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.size() < limits::http_token_bytes_min || token.size() > limits::http_token_bytes_max) {
    return Error(Errc::invalid_argument,
                 fmt::format("http_token_file = \"{}\": the token has {} bytes, expected {} to {}. "
                             "Make one: openssl rand -hex 32",
                             path, token.size(), limits::http_token_bytes_min, limits::http_token_bytes_max));
  }
  return token;
}

}  // namespace

Result<std::optional<McpHttpOptions>> mcp_http_options(const Config& config, bool open) {
  if (config.http_listen.empty()) return std::optional<McpHttpOptions>();
  ASSIGN_OR_RETURN(const ListenAddress listen, parse_listen_address("http_listen", config.http_listen));
  if (config.http_certificate_file.empty() != config.http_key_file.empty())
    return Error(Errc::invalid_argument, "set both http_certificate_file and http_key_file, or neither.");
  if (!listen.loopback && config.http_certificate_file.empty()) {
    return Error(Errc::invalid_argument,
                 fmt::format("http_listen = \"{}\": other machines reach this address. Set http_certificate_file and "
                             "http_key_file, or listen at 127.0.0.1.",
                             config.http_listen));
  }
  // Keys of a machine's certificates are often readable by a group.
  RETURN_IF_ERROR(check_private("http_key_file", config.http_key_file, 07, "o-rwx"));
  McpHttpOptions options;
  options.server.address = listen.address;
  options.server.port = listen.port;
  options.server.certificate_file = config.http_certificate_file;
  options.server.key_file = config.http_key_file;
  options.server.body_bytes_max = limits::request_line_bytes_max;
  options.hosts = config.http_hosts;
  options.caller = caller_with_token();
  if (listen.address != "127.0.0.1" && listen.address != "::1")
    options.hosts.push_back(listen.ipv6 ? fmt::format("[{}]", listen.address) : listen.address);
  if (open) return std::optional(std::move(options));
  std::string path = config.http_token_file;
  if (path.empty()) {
    path = config.data + "/keys/http.token";
    RETURN_IF_ERROR(make_token(path));
  }
  ASSIGN_OR_RETURN(options.token, read_token(path));
  return std::optional(std::move(options));
}

}  // namespace muniment::daemon
