// What started the daemon, where that is systemd or speaks as it does: it may hand over the socket that it listens on
// for us (LISTEN_FDS, sd_listen_fds(3)), and wants to hear when we serve, stop and are alive (NOTIFY_SOCKET,
// sd_notify(3)). Both are a few lines, so that no library is loaded for them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::daemon {

// A Unix socket that somebody else has bound and listens on, and keeps when we end.
struct HandedSocket {
  Fd fd;
  std::string path;  // empty where its name is not a file's
};

class ServiceManager {
 public:
  // Nobody: everything is a no-op.
  ServiceManager() = default;

  // Takes what the environment says, and out of it: children are no part of the conversation (Debian's Postgres would
  // say READY=1 in our name). To be called before there are threads. Errors: invalid_argument for a descriptor that is
  // not one listening Unix stream socket, naming what it is.
  static Result<ServiceManager> from_environment();

  std::optional<HandedSocket> take_socket();
  // Where clients find it, whatever the configuration says; nullopt where there is none, or it is not a file.
  std::optional<std::string> path_of_socket() const;
  // How often `alive` is to be called; nullopt where nobody waits for it.
  std::optional<std::chrono::milliseconds> alive_every() const { return alive_every_; }

  void ready(std::string_view what) const;  // serving; `what` is shown by `systemctl status`
  void stopping() const;
  void alive() const;

 private:
  void say(std::string_view state) const;

  std::optional<HandedSocket> socket_;
  std::string address_;  // of the notification socket; '@' first: an abstract name
  std::optional<std::chrono::milliseconds> alive_every_;
};

}  // namespace muniment::daemon
