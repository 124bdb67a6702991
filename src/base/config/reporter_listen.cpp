#include "base/config/reporter_listen.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment {
namespace {

constexpr const char* runbook = "See docs/runbook.md (reporter).";

Error bad_listen(const std::string& value, std::string_view why) {
  return Error(Errc::invalid_argument, fmt::format("reporter_listen = \"{}\": {}", value, why));
}

// Parses "10.1.2.0/24", or a single address.
Result<std::string> network_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  std::array<unsigned char, 16> bytes{};
  const bool ipv4 = ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1;
  const bool known = ipv4 || ::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
  const std::int64_t bits_max = ipv4 ? 32 : 128;
  const auto bits = slash == std::string::npos ? std::optional(bits_max) : parse_decimal(text.substr(slash + 1));
  if (!known || !bits || *bits < 0 || *bits > bits_max) {
    return Error(Errc::invalid_argument,
                 fmt::format("reporter_clients: \"{}\" is not a network; write 10.1.2.0/24 or fd00::/8", text));
  }
  return fmt::format("{}/{}", address, *bits);
}

Result<std::vector<std::string>> networks_of(std::string_view list) {
  std::vector<std::string> networks;
  for (bool more = !list.empty(); more;) {
    const std::size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    ASSIGN_OR_RETURN(std::string network, network_of(std::string(item)));
    networks.push_back(std::move(network));
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
  }
  if (networks.size() <= limits::reporter_clients_max) return networks;
  return Error(Errc::invalid_argument, fmt::format("reporter_clients names {} networks, limit {}", networks.size(),
                                                   limits::reporter_clients_max));
}

}  // namespace

Result<std::optional<ReporterListen>> reporter_listen_of(const Config& config) {
  if (config.reporter_listen.empty()) return std::optional<ReporterListen>();
  if (!config.database.empty()) {
    return Error(
        Errc::conflict,
        fmt::format(
            "reporter_listen requires the private Postgres, but database names another one. Its administrator can "
            "create a login that is a member of the role reporter. {}",
            runbook));
  }
  ReporterListen listen;
  ASSIGN_OR_RETURN(listen.place, parse_listen_address("reporter_listen", config.reporter_listen));
  if (config.reporter_password_file.empty()) {
    return Error(
        Errc::invalid_argument,
        fmt::format(
            "reporter_listen requires a password: put one into a file that is closed to other users, and its path into "
            "reporter_password_file. {}",
            runbook));
  }
  ASSIGN_OR_RETURN(listen.clients, networks_of(config.reporter_clients));
  if (listen.clients.empty() && !listen.place.loopback) {
    return bad_listen(config.reporter_listen,
                      fmt::format("other machines can reach this address. To permit them, set reporter_clients = "
                                  "\"10.1.2.0/24\"; otherwise listen at 127.0.0.1. {}",
                                  runbook));
  }
  if (listen.clients.empty()) listen.clients.emplace_back(listen.place.ipv6 ? "::1/128" : "127.0.0.0/8");
  return std::optional(std::move(listen));
}

}  // namespace muniment
