// The service manager that started the daemon, if it is systemd or compatible: it may pass the listening socket
// (LISTEN_FDS, sd_listen_fds(3)) and receives the states ready, stopping and alive (NOTIFY_SOCKET, sd_notify(3)). Each
// protocol is a few lines, so no library is needed.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::daemon {

// A Unix socket that another process has bound, listens on, and keeps when the daemon ends.
struct HandedSocket {
  Fd fd;
  std::string path;  // empty if its name is not a file
};

class ServiceManager {
 public:
  // No service manager: every function does nothing.
  ServiceManager() = default;

  // Reads the variables and removes them from the environment, so that children cannot use them (Debian's Postgres
  // would send READY=1 in the daemon's name). Call it before any thread starts. Errors: invalid_argument for a
  // descriptor that is not one listening Unix stream socket; the message names its kind.
  static Result<ServiceManager> from_environment();

  std::optional<HandedSocket> take_socket();
  // The path of the passed socket, which overrides the configuration; nullopt if no socket was passed or it has no
  // path.
  std::optional<std::string> path_of_socket() const;
  // The interval of `alive` calls; nullopt if the service manager has no watchdog.
  std::optional<std::chrono::milliseconds> alive_every() const { return alive_every_; }

  void ready(std::string_view what) const;  // the daemon serves; `systemctl status` shows `what`
  void stopping() const;
  void alive() const;

 private:
  void say(std::string_view state) const;

  std::optional<HandedSocket> socket_;
  std::string address_;  // address of the notification socket; a leading '@' marks an abstract name
  std::optional<std::chrono::milliseconds> alive_every_;
};

}  // namespace muniment::daemon
