#include "base/config/reporter_listen.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment {
namespace {

constexpr const char* runbook = "See docs/runbook.md (reporter).";

struct Address {
  int family = 0;                         // AF_INET or AF_INET6
  std::array<unsigned char, 16> bytes{};  // of IPv4 the first four
};

std::optional<Address> address_of(const std::string& text) {
  Address address;
  for (const int family : {AF_INET, AF_INET6}) {
    address.family = family;
    if (::inet_pton(family, text.c_str(), address.bytes.data()) == 1) return address;
  }
  return {};
}

bool is_own(const Address& address) {
  if (address.family == AF_INET) return address.bytes[0] == 127;
  Address loopback;
  loopback.bytes.back() = 1;
  return address.bytes == loopback.bytes;
}

Error bad_listen(const std::string& value, std::string_view why) {
  return Error(Errc::invalid_argument, fmt::format("reporter_listen = \"{}\": {}", value, why));
}

Result<ReporterListen> place_of(const std::string& value) {
  const std::size_t colon = value.rfind(':');
  const Error bad = bad_listen(value, "give the number of an address and a port: 127.0.0.1:5433, or [::1]:5433");
  if (colon == std::string::npos) return bad;
  ReporterListen listen;
  listen.address = value.substr(0, colon);
  if (listen.address == "localhost") listen.address = "127.0.0.1";
  const bool bracketed = listen.address.size() > 2 && listen.address.front() == '[' && listen.address.back() == ']';
  if (bracketed) listen.address = listen.address.substr(1, listen.address.size() - 2);
  const auto address = address_of(listen.address);
  const auto port = parse_decimal(value.substr(colon + 1));
  if (!address || (address->family == AF_INET6) != bracketed || !port || *port < 1 || *port > 65'535) return bad;
  listen.port = static_cast<std::uint16_t>(*port);
  return listen;
}

// "10.1.2.0/24", or one address.
Result<std::string> network_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto address = address_of(text.substr(0, slash));
  const std::int64_t bits_max = address && address->family == AF_INET ? 32 : 128;
  const auto bits = slash == std::string::npos ? std::optional(bits_max) : parse_decimal(text.substr(slash + 1));
  if (!address || !bits || *bits < 0 || *bits > bits_max) {
    return Error(Errc::invalid_argument,
                 fmt::format("reporter_clients: \"{}\" is no network; write 10.1.2.0/24 or fd00::/8", text));
  }
  return fmt::format("{}/{}", text.substr(0, slash), *bits);
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

std::string ReporterListen::text() const {
  return address.find(':') == std::string::npos ? fmt::format("{}:{}", address, port)
                                                : fmt::format("[{}]:{}", address, port);
}

Result<std::optional<ReporterListen>> reporter_listen_of(const Config& config) {
  if (config.reporter_listen.empty()) return std::optional<ReporterListen>();
  if (!config.database.empty()) {
    return Error(
        Errc::conflict,
        fmt::format(
            "reporter_listen is for the private Postgres, and database names another one. Let its administrator "
            "make a login that is a member of the role reporter. {}",
            runbook));
  }
  ASSIGN_OR_RETURN(ReporterListen listen, place_of(config.reporter_listen));
  if (config.reporter_password_file.empty()) {
    return Error(
        Errc::invalid_argument,
        fmt::format("reporter_listen needs a password: put one into a file that is closed to others, and its path into "
                    "reporter_password_file. {}",
                    runbook));
  }
  ASSIGN_OR_RETURN(listen.clients, networks_of(config.reporter_clients));
  const Address address = *address_of(listen.address);
  if (listen.clients.empty() && !is_own(address)) {
    return bad_listen(config.reporter_listen,
                      fmt::format("other machines reach this address. If that is meant, say which: reporter_clients = "
                                  "\"10.1.2.0/24\"; otherwise listen at 127.0.0.1. {}",
                                  runbook));
  }
  if (listen.clients.empty()) listen.clients.emplace_back(address.family == AF_INET ? "127.0.0.0/8" : "::1/128");
  return std::optional(std::move(listen));
}

}  // namespace muniment
