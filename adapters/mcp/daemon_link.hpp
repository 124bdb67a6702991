// Maintains the connection of a proxy to the daemon: connects, reconnects and, if allowed, starts an embedded daemon.
// It never blocks: a child process starts the daemon, so that signals and the host's lines are handled in the meantime.
//
// The owner polls `wait` and calls `step`. Every connection has a number; bytes and lines of earlier connections are
// discarded.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/mcp/line_stream.hpp"
#include "base/files/file.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

class DaemonLink {
 public:
  enum class State {
    connecting,   // retrying until the time limit
    connected,    // lines can be sent
    unreachable,  // `problem` has the reason; the next attempt needs a call of `retry`
  };
  using Time = std::chrono::steady_clock::time_point;

  // `patience` limits the time of retries after a lost connection. The first `step` makes the first attempt.
  DaemonLink(Session& session, std::chrono::milliseconds patience);
  ~DaemonLink();
  DaemonLink(const DaemonLink&) = delete;
  DaemonLink& operator=(const DaemonLink&) = delete;

  State state() const { return state_; }
  bool connected() const { return state_ == State::connected; }
  std::int64_t connection() const { return connection_; }  // 0: none yet
  const std::string& problem() const { return problem_; }
  // Returns whether the daemon refused the last connection because of its user or too many connections.
  bool refused() const { return refused_; }

  // Call this when the daemon is needed: from now on a failed attempt may start a daemon. If it is unreachable, makes a
  // further attempt.
  void want();
  // Makes one attempt without starting a daemon if it is unreachable.
  void probe();

  // Advances the connection attempts. Call it after every poll() and check `state` afterwards.
  void step();
  // Writes as much of the queued data as the socket accepts.
  void flush();
  void send(std::string_view bytes);
  std::size_t unsent() const { return writer_ ? writer_->waiting() : 0; }
  // Returns the next received line without its line feed. A line over 64 MiB breaks the connection.
  std::optional<std::string> next_line();

  // Adds the descriptors to poll; `reading` is set if the owner accepts lines now. Returns the longest wait in ms; -1:
  // unlimited.
  int wait(std::vector<pollfd>& polled, bool reading) const;

 private:
  void attempt();
  void start_daemon_aside();
  void take_start();
  void failed(std::string why);
  bool take_refusal(std::string_view line);
  void disconnect();
  void broke();
  std::chrono::milliseconds next_pause();

  Session& session_;
  std::chrono::milliseconds patience_;
  State state_ = State::connecting;
  std::string problem_;
  bool wanted_ = false;
  bool only_once_ = true;  // stop after the first failed attempt
  Time until_{};           // end of the time limit for retries
  Time next_attempt_{};
  Time not_before_{};                       // earliest next attempt, which the daemon requested in a refusal
  std::chrono::milliseconds last_pause_{};  // pause between attempts; grows with each failure
  bool heard_ = false;                      // a line was received on this connection
  bool refused_ = false;
  Time connected_at_{};
  std::int64_t connection_ = 0;
  std::optional<Client> client_;  // owns the socket
  std::optional<LineReader> reader_;
  std::optional<ByteWriter> writer_;
  pid_t starter_ = -1;  // child process that starts a daemon
  Fd starter_says_;
  std::string said_;
};

}  // namespace muniment::cli
