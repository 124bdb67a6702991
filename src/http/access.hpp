// Access to a listener: the names by which a browser may reach it, and a bearer token.
//
// A web page whose name is made to resolve to 127.0.0.1 (DNS rebinding) can send requests to a loopback listener, and
// read the answers. Its name is then in the Host header, and the page's origin in Origin; neither can be forged by the
// page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "http/request.hpp"

namespace muniment::http {

// localhost, 127.0.0.1 and [::1] are allowed at the listener's port, and those that are added. Letter case is ignored;
// nothing else is equal but what is written in the same way: no trailing dot, no other form of an IP address.
struct AllowedHosts {
  std::uint16_t port = 0;  // the listener's
  // "memory.example.org" at any port, as a proxy may map it, or "memory.example.org:8443"; "[2001:db8::1]".
  std::vector<std::string> added;
  std::string setting = "the allowed hosts";  // that adds one, for messages
};

// There is one Host header, and it is an allowed host, with the listener's port or none. Errors: denied.
Status check_host(const Request& request, const AllowedHosts& hosts);

// There is no Origin header, or one that is http:// or https:// with an allowed host, at any port. Errors: denied, also
// for "null", the origin of a sandboxed page or of a file.
Status check_origin(const Request& request, const AllowedHosts& hosts);

// There is one Authorization header: "Bearer" and the token. Takes the same time wherever they differ. An empty token
// matches nothing.
bool bearer_token_matches(const Request& request, std::string_view token);

}  // namespace muniment::http
