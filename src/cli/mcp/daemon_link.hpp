// The connection of a proxy to the daemon: made, made again, and with an embedded daemon started where that is allowed.
// It never blocks: the daemon is started by a child process, so that signals and the host's lines are served meanwhile.
//
// The owner polls `wait` and calls `step`. Every connection has a number; bytes and lines of an earlier one are
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

#include "base/files/file.hpp"
#include "cli/connect/session.hpp"
#include "cli/mcp/line_stream.hpp"

namespace muniment::cli {

class DaemonLink {
 public:
  enum class State {
    connecting,   // attempts are made until the patience ends
    connected,    // lines can be sent
    unreachable,  // `problem` says why; attempts go on only when `retry` asks for one
  };
  using Time = std::chrono::steady_clock::time_point;

  // `patience` bounds the attempts after a connection that broke. The first attempt is made by the first `step`.
  DaemonLink(Session& session, std::chrono::milliseconds patience);
  ~DaemonLink();
  DaemonLink(const DaemonLink&) = delete;
  DaemonLink& operator=(const DaemonLink&) = delete;

  State state() const { return state_; }
  bool connected() const { return state_ == State::connected; }
  std::int64_t connection() const { return connection_; }  // 0: there was none yet
  const std::string& problem() const { return problem_; }
  // Did the daemon refuse the last connection: because of its user, or because too many are open?
  bool refused() const { return refused_; }

  // A caller needs the daemon: from now on an attempt that fails may start one. Where it is unreachable, another
  // attempt is made.
  void want();
  // One attempt without starting a daemon, where it is unreachable.
  void probe();

  // Follows the attempts to connect. Call it after every poll(), and look at `state` afterwards.
  void step();
  // Writes what was sent as far as that goes now.
  void flush();
  void send(std::string_view bytes);
  std::size_t unsent() const { return writer_ ? writer_->waiting() : 0; }
  // The next line that was received, without its line feed. A line of more than 64 MiB breaks the connection.
  std::optional<std::string> next_line();

  // Adds what poll() has to wait for; `reading`: the owner takes lines now. Answers the longest wait in ms, -1: none.
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
  bool only_once_ = true;  // the attempts end with the first that fails
  Time until_{};           // the end of the patience
  Time next_attempt_{};
  Time not_before_{};                       // as the daemon asked for when it refused the connection
  std::chrono::milliseconds last_pause_{};  // between attempts; it grows
  bool heard_ = false;                      // the connection has given a line
  bool refused_ = false;
  Time connected_at_{};
  std::int64_t connection_ = 0;
  std::optional<Client> client_;  // owns the socket
  std::optional<LineReader> reader_;
  std::optional<ByteWriter> writer_;
  pid_t starter_ = -1;  // the child that starts a daemon
  Fd starter_says_;
  std::string said_;
};

}  // namespace muniment::cli
