// The listening TCP socket: binds it, accepts connections, and formats addresses.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::http {

struct Listener {
  Fd socket;  // non-blocking
  std::uint16_t port = 0;
};

// `address` is a numeric IPv4 or IPv6 address; port 0 selects a free port. Errors: invalid_argument for an invalid
// address or one that this machine does not have, denied for a port that needs privileges, unavailable for one that is
// in use.
Result<Listener> open_listener(const std::string& address, std::uint16_t port);

struct Accepted {
  Fd socket;  // if it is not open, errno has the reason
  sockaddr_storage address{};
  socklen_t address_bytes = sizeof(sockaddr_storage);
};

// A client that acknowledges nothing for `silent_max` is disconnected. The kernel's send buffer is small, so that a
// client that does not read costs little.
Accepted accept_from(const Fd& listener, std::chrono::seconds silent_max);

// "127.0.0.1:8080", "[::1]:8080".
std::string address_text(const sockaddr* address);

}  // namespace muniment::http
