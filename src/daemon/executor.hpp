// The executor: a child of the daemon that starts the commands of `muniment exec` and `muniment workflow run` itself,
// as the user of the caller, and computes the digests of working trees. It is the program `muniment` beside
// `munimentd`, and is started at the first connection to its socket. For each caller it gets a connection to the daemon
// whose commands are observed. Loop thread, unless stated otherwise.
#pragma once

#include <uv.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/files/file.hpp"
#include "base/process/spawn.hpp"
#include "base/result.hpp"
#include "daemon/peer.hpp"

namespace muniment::daemon {

class Executor {
 public:
  // Returns whether the peer may have a connection, and serves it if so.
  using Serve = std::function<bool(Fd connection, const Peer& peer)>;

  Executor(uv_loop_t* loop, Serve serve) : loop_(loop), serve_(std::move(serve)) {}
  ~Executor() { close(); }

  // Errors: unavailable without the program or a socket.
  Status listen();
  // Abstract name of the socket, without its leading NUL; empty before `listen`.
  const std::string& name() const { return name_; }
  void close();

 private:
  struct Poll;  // a poll handle with its descriptor; the loop frees it
  Poll* watch(Fd fd, void (Executor::*on_readable)());
  void stop(Poll*& poll);
  void start();
  Status try_start();
  void admit();

  uv_loop_t* const loop_;
  const Serve serve_;
  std::string name_;
  std::string program_;
  Poll* connecting_ = nullptr;  // the listening socket, watched while no executor runs
  Poll* control_ = nullptr;     // the channel to the executor; nullptr: none runs
  std::optional<Child> child_;
};

}  // namespace muniment::daemon
