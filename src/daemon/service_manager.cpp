// Implements the socket and notification protocols of systemd.
#include "daemon/service_manager.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"

namespace muniment::daemon {
namespace {

constexpr int first_handed = 3;  // SD_LISTEN_FDS_START
// Two notifications per timeout, so that one late wake-up does not get the daemon killed.
constexpr std::int64_t alive_per_timeout = 2;

std::string taken_from_environment(const char* name) {
  const char* const value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

Error not_ours(std::string_view why) {
  return Error(
      Errc::invalid_argument,
      fmt::format(
          "the service manager handed over descriptor {} as the socket to listen on, but {}. In the .socket unit: one "
          "ListenStream= with an absolute path, and Accept=no",
          first_handed, why));
}

Result<int> option_of(int descriptor, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0) return value;
  if (errno == ENOTSOCK) return not_ours("it is not a socket");
  return not_ours(errno == EBADF ? "it is not open" : std::strerror(errno));
}

Result<HandedSocket> checked_socket(int descriptor) {
  ASSIGN_OR_RETURN(const int family, option_of(descriptor, SO_DOMAIN));
  if (family != AF_UNIX) return not_ours("it is not a Unix socket");
  ASSIGN_OR_RETURN(const int type, option_of(descriptor, SO_TYPE));
  if (type != SOCK_STREAM) return not_ours("it is not a stream socket");
  ASSIGN_OR_RETURN(const int listening, option_of(descriptor, SO_ACCEPTCONN));
  if (listening == 0) return not_ours("it does not listen");
  HandedSocket handed;
  handed.fd = Fd(descriptor);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return not_ours(std::strerror(errno));
  // A shorter address has no name; an abstract one begins with NUL.
  const std::size_t length = size - std::min<std::size_t>(size, offsetof(sockaddr_un, sun_path));
  handed.path.assign(address.sun_path, ::strnlen(address.sun_path, std::min(length, sizeof address.sun_path)));
  return handed;
}

}  // namespace

Result<ServiceManager> ServiceManager::from_environment() {
  ServiceManager manager;
  const std::string for_pid = taken_from_environment("LISTEN_PID");
  const std::string count = taken_from_environment("LISTEN_FDS");
  taken_from_environment("LISTEN_FDNAMES");
  manager.address_ = taken_from_environment("NOTIFY_SOCKET");
  const std::string watchdog_us = taken_from_environment("WATCHDOG_USEC");
  const std::string watchdog_pid = taken_from_environment("WATCHDOG_PID");

  // Descriptors for a different pid were inherited through a process that did not clean up.
  if (parse_decimal(for_pid) == std::int64_t{::getpid()} && !count.empty() && count != "0") {
    if (count != "1") return not_ours(fmt::format("LISTEN_FDS is \"{}\", expected 1", count));
    ASSIGN_OR_RETURN(manager.socket_, checked_socket(first_handed));
  }
  const bool watched = watchdog_pid.empty() || parse_decimal(watchdog_pid) == std::int64_t{::getpid()};
  if (const auto timeout_us = parse_decimal(watchdog_us);
      watched && timeout_us && *timeout_us > 0 && !manager.address_.empty()) {
    manager.alive_every_ = std::chrono::milliseconds(std::max<std::int64_t>(1, *timeout_us / 1000 / alive_per_timeout));
  }
  return manager;
}

std::optional<HandedSocket> ServiceManager::take_socket() { return std::exchange(socket_, std::nullopt); }

std::optional<std::string> ServiceManager::path_of_socket() const {
  if (!socket_ || socket_->path.empty()) return std::nullopt;
  return socket_->path;
}

void ServiceManager::ready(std::string_view what) const {
  say(fmt::format("READY=1\nMAINPID={}\nSTATUS={}", ::getpid(), what));
}

void ServiceManager::stopping() const {
  say("STOPPING=1\nSTATUS=answering waiting requests and writing the end of the log");
}

void ServiceManager::alive() const { say("WATCHDOG=1"); }

// A failure to notify is only logged, since nothing depends on it.
void ServiceManager::say(std::string_view state) const {
  if (address_.empty()) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if ((address_[0] != '/' && address_[0] != '@') || address_.size() >= sizeof to.sun_path) {
    log_warning("NOTIFY_SOCKET is not the address of a Unix socket", {{"name", address_}});
    return;
  }
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  const Fd from(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::sendto(from.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), length) <
      0) {
    log_warning("cannot notify the service manager", {{"name", address_}, {"error", std::strerror(errno)}});
  }
}

}  // namespace muniment::daemon
