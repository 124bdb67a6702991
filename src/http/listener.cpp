// Opens the listening socket and accepts connections.
#include "http/listener.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace muniment::http {
namespace {

constexpr int backlog = 512;
constexpr int unsent_bytes_max = 128 * 1024;

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<Address> parse_address(const std::string& text, std::uint16_t port) {
  Address address;
  auto* const four = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    address.bytes = sizeof(sockaddr_in);
  } else if (::inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    address.bytes = sizeof(sockaddr_in6);
  } else {
    return Error(Errc::invalid_argument,
                 fmt::format("\"{}\" is not an IP address. Give a number, such as 127.0.0.1 or ::1", text));
  }
  return address;
}

Error listen_error(const Address& address, int error_number) {
  const std::string where = address_text(address.get());
  switch (error_number) {
    case EADDRINUSE:
      return Error(
          Errc::unavailable,
          fmt::format("listening on {}: the address is in use. Stop the other program, or choose another port", where));
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return Error(
          Errc::invalid_argument,
          fmt::format("listening on {}: this machine does not have that address. 127.0.0.1 and 0.0.0.0 always work",
                      where));
    case EACCES:
      return Error(
          Errc::denied,
          fmt::format("listening on {}: not permitted. Ports below 1024 need privileges; choose another port", where));
    default: return file_error("listening on", where, error_number);
  }
}

void set_option(int socket, int level, int name, int value) { ::setsockopt(socket, level, name, &value, sizeof value); }

}  // namespace

Result<Listener> open_listener(const std::string& address, std::uint16_t port) {
  ASSIGN_OR_RETURN(Address place, parse_address(address, port));
  Listener listener;
  listener.socket = Fd(::socket(place.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.socket.open()) return listen_error(place, errno);
  set_option(listener.socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(listener.socket.get(), place.get(), place.bytes) != 0 || ::listen(listener.socket.get(), backlog) != 0 ||
      ::getsockname(listener.socket.get(), reinterpret_cast<sockaddr*>(&place.storage), &place.bytes) != 0) {
    return listen_error(place, errno);
  }
  // sin_port and sin6_port have the same offset.
  listener.port = ntohs(reinterpret_cast<const sockaddr_in*>(&place.storage)->sin_port);
  return listener;
}

Accepted accept_from(const Fd& listener, std::chrono::seconds silent_max) {
  Accepted accepted;
  accepted.socket = Fd(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&accepted.address),
                                 &accepted.address_bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!accepted.socket.open()) return accepted;
  const int socket = accepted.socket.get();
  const std::chrono::milliseconds silent_ms = silent_max;
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(silent_ms.count()));
  set_option(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsent_bytes_max);
  return accepted;
}

std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET6) {
    const auto* const six = reinterpret_cast<const sockaddr_in6*>(address);
    ::inet_ntop(AF_INET6, &six->sin6_addr, text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), ntohs(six->sin6_port));
  }
  const auto* const four = reinterpret_cast<const sockaddr_in*>(address);
  ::inet_ntop(AF_INET, &four->sin_addr, text.data(), text.size());
  return fmt::format("{}:{}", text.data(), ntohs(four->sin_port));
}

}  // namespace muniment::http
