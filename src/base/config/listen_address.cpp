#include "base/config/listen_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"

namespace muniment {
namespace {

using Bytes = std::array<unsigned char, 16>;  // IPv4 uses the first four

std::optional<Bytes> bytes_of(int family, const std::string& address) {
  Bytes bytes{};
  if (::inet_pton(family, address.c_str(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

bool is_loopback(const Bytes& bytes, bool ipv6) {
  if (!ipv6) return bytes[0] == 127;
  return bytes.back() == 1 && std::all_of(bytes.begin(), bytes.end() - 1, [](unsigned char byte) { return byte == 0; });
}

}  // namespace

std::string ListenAddress::text() const {
  return ipv6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

Result<ListenAddress> parse_listen_address(std::string_view key, const std::string& value) {
  const Error bad(
      Errc::invalid_argument,
      fmt::format("{} = \"{}\": give a numeric address and a port: 127.0.0.1:5433, or [::1]:5433", key, value));
  const std::size_t colon = value.rfind(':');
  if (colon == std::string::npos) return bad;
  ListenAddress listen;
  listen.address = value.substr(0, colon);
  if (listen.address == "localhost") listen.address = "127.0.0.1";
  listen.ipv6 = listen.address.size() > 2 && listen.address.front() == '[' && listen.address.back() == ']';
  if (listen.ipv6) listen.address = listen.address.substr(1, listen.address.size() - 2);
  const auto bytes = bytes_of(listen.ipv6 ? AF_INET6 : AF_INET, listen.address);
  const auto port = parse_decimal(value.substr(colon + 1));
  if (!bytes || !port || *port < 1 || *port > 65'535) return bad;
  listen.port = static_cast<std::uint16_t>(*port);
  listen.loopback = is_loopback(*bytes, listen.ipv6);
  return listen;
}

}  // namespace muniment
