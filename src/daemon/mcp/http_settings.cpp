// Reads and checks the http_* settings, the token and the certificate files.
#include "daemon/mcp/http_settings.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "base/config/listen_address.hpp"
#include "base/limits.hpp"
#include "http/token.hpp"

namespace muniment::daemon {
namespace {

// Clients run as the daemon's user, because only that user can read the token, but without an administrator's rights.
gateway::Caller caller_with_token() {
  gateway::Caller caller;
  caller.uid = ::geteuid();
  caller.actor = fmt::format("uid:{}", caller.uid);
  return caller;
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
  RETURN_IF_ERROR(http::check_private_file("http_key_file", config.http_key_file, 07, "o-rwx"));
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
    RETURN_IF_ERROR(http::make_token_file(path));
  }
  ASSIGN_OR_RETURN(options.token, http::read_token_file("http_token_file", path));
  return std::optional(std::move(options));
}

}  // namespace muniment::daemon
