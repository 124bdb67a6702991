// Checks the Host, Origin and Authorization headers of requests.
#include "http/access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/crypto/hmac.hpp"
#include "base/crypto/sha256.hpp"
#include "base/text.hpp"

namespace muniment::http {
namespace {

constexpr std::array<std::string_view, 3> loopback_names{"localhost", "127.0.0.1", "[::1]"};
constexpr std::size_t shown_bytes_max = 100;

// "name" or "name:port"; the name includes the brackets of an IPv6 address.
struct Place {
  std::string_view name;
  std::optional<std::int64_t> port;
};

// Returns nullopt if the port is empty, has a leading zero or is invalid. The name is only compared with the allowed
// ones, so it is not parsed.
std::optional<Place> parse_place(std::string_view text) {
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == std::string_view::npos) return {};
  const std::size_t colon = text.find(':', bracket);
  Place place{text.substr(0, colon), {}};
  if (colon == std::string_view::npos) return place;
  place.port = parse_decimal(text.substr(colon + 1));
  if (!place.port || *place.port < 1 || *place.port > 65'535) return {};
  return place;
}

bool is_loopback(std::string_view name) {
  return std::any_of(loopback_names.begin(), loopback_names.end(),
                     [name](std::string_view one) { return equal_ignoring_case(one, name); });
}

bool is_added(const Place& place, const AllowedHosts& hosts, bool any_port) {
  return std::any_of(hosts.added.begin(), hosts.added.end(), [&](const std::string& one) {
    const auto added = parse_place(one);
    return added && !added->name.empty() && equal_ignoring_case(added->name, place.name) &&
           (any_port || !added->port || added->port == place.port);
  });
}

Error denied(std::string_view header, std::string_view value, const AllowedHosts& hosts) {
  return Error(Errc::denied,
               fmt::format("the {} header \"{}\" is not localhost, 127.0.0.1 or [::1] at this port, nor a host "
                           "that was added. If clients reach the server by that name, add it to {}",
                           header, escape_for_terminal(preview(value, shown_bytes_max)), hosts.setting));
}

}  // namespace

Status check_host(const Request& request, const AllowedHosts& hosts) {
  const auto values = request.headers_named("Host");
  if (values.size() != 1) {
    return Error(Errc::denied, fmt::format("the request has {} Host headers; send one", values.size()));
  }
  const auto place = parse_place(values.front());
  if (place && is_loopback(place->name) && (!place->port || *place->port == hosts.port)) return success();
  if (place && is_added(*place, hosts, false)) return success();
  return denied("Host", values.front(), hosts);
}

Status check_origin(const Request& request, const AllowedHosts& hosts) {
  const auto values = request.headers_named("Origin");
  if (values.empty()) return success();
  if (values.size() > 1) {
    return Error(Errc::denied, fmt::format("the request has {} Origin headers; send one", values.size()));
  }
  std::string_view rest = values.front();
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(rest.substr(0, scheme.size()), scheme)) continue;
    const auto place = parse_place(rest.substr(scheme.size()));
    if (place && (is_loopback(place->name) || is_added(*place, hosts, true))) return success();
  }
  return denied("Origin", rest, hosts);
}

bool bearer_token_matches(const Request& request, std::string_view token) {
  const auto values = request.headers_named("Authorization");
  if (token.empty() || values.size() != 1) return false;
  constexpr std::string_view scheme = "Bearer ";
  std::string_view value = values.front();
  if (!equal_ignoring_case(value.substr(0, scheme.size()), scheme)) return false;
  value.remove_prefix(scheme.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  // Hashes have equal lengths, so the time reveals nothing about the token's.
  return equal_hashes(view(sha256(value)), view(sha256(token)));
}

}  // namespace muniment::http
