// Checks access to a listener: the names by which a browser may reach it, and a bearer token.
//
// A web page whose name is made to resolve to 127.0.0.1 (DNS rebinding) can send requests to a loopback listener and
// read the answers. Such requests have the page's name in the Host header and its origin in Origin; the page cannot
// forge either.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "http/request.hpp"

namespace muniment::http {

// Allows localhost, 127.0.0.1 and [::1] at the listener's port, and the added names. Letter case is ignored; otherwise
// names must be spelled identically: no trailing dot, no other form of an IP address.
struct AllowedHosts {
  std::uint16_t port = 0;  // port of the listener
  // "memory.example.org" at any port, since a proxy may map it, or "memory.example.org:8443"; "[2001:db8::1]".
  std::vector<std::string> added;
  std::string setting = "the allowed hosts";  // name of the setting that adds a host, for messages
};

// Requires exactly one Host header with an allowed host and the listener's port or none. Errors: denied.
Status check_host(const Request& request, const AllowedHosts& hosts);

// Requires no Origin header, or one that is http:// or https:// with an allowed host, at any port. Errors: denied, also
// for "null", the origin of a sandboxed page or of a file.
Status check_origin(const Request& request, const AllowedHosts& hosts);

// Requires exactly one Authorization header: "Bearer" and the token. The comparison takes constant time. An empty token
// matches nothing.
bool bearer_token_matches(const Request& request, std::string_view token);

}  // namespace muniment::http
