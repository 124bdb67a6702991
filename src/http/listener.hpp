// The listening TCP socket: binds it, accepts from it, and writes addresses as text.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::http {

struct Listener {
  Fd socket;  // does not block
  std::uint16_t port = 0;
};

// `address` is an IPv4 or IPv6 address as a number; port 0: any that is free. Errors: invalid_argument for an address
// that is none or is not of this machine, denied for a port that needs privileges, unavailable for one that is in use.
Result<Listener> open_listener(const std::string& address, std::uint16_t port);

struct Accepted {
  Fd socket;  // open is false: errno says why
  sockaddr_storage address{};
  socklen_t address_bytes = sizeof(sockaddr_storage);
};

// A client that acknowledges nothing for `silent_max` is disconnected, and the kernel queues little for one that does
// not read.
Accepted accept_from(const Fd& listener, std::chrono::seconds silent_max);

// "127.0.0.1:8080", "[::1]:8080".
std::string address_text(const sockaddr* address);

}  // namespace muniment::http
