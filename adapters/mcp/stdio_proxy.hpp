// Implements the MCP server that a host starts, as a relay: it copies lines between the host (standard input and
// output) and the daemon's socket, and keeps the host's session alive while the daemon is started, restarted or
// replaced.
//
// Standard output carries only messages. Without a connection, up to 8 MiB of the host's lines are queued; then the
// host is not read. A request on a lost connection is answered with an error, because its outcome is unknown.
// `initialize` is sent again instead.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/mcp/daemon_link.hpp"
#include "adapters/mcp/line_stream.hpp"
#include "base/json/message_skim.hpp"
#include "base/process/stop_signals.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

// Description of the session, sent to the daemon before the host's first line.
struct McpSession {
  bool record = true;
  std::string run_id;  // id of the run, the same on every connection
  std::string agent;   // empty: the daemon uses the host's name
  std::string labels;  // a JSON object
  std::string folder;
  std::vector<std::string> toolsets;
  bool review = false;             // what the session remembers waits for review
  std::vector<std::string> files;  // absolute paths of folders whose files the daemon may read
};

// Returns the line of `muniment/session` with its line feed.
std::string session_line(const McpSession& about, bool resume);

class StdioProxy {
 public:
  StdioProxy(Session& session, McpSession about);

  // Returns after the host has closed its side or a signal requests the end.
  void run();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct InFlight {
    std::string id;  // as written by the host
    std::string method;
    std::string params{};  // parameters of resources/subscribe and unsubscribe
  };

  void follow_connection();
  void begin_connection();
  void end_connection();
  void take_daemon_lines();
  void take_daemon_message(std::string_view message, bool& swallow);
  void resumed();
  void take_answer(const InFlight& asked, const json::Envelope& answer);
  void take_host_lines();
  void take_cut_line(const LinePiece& piece);
  void send_waiting();
  bool note_sent(std::string_view message);
  void note_request(const json::Envelope& request, std::string_view message);
  void refuse_waiting();
  void answer_error(std::string_view id, int code, std::string_view message);
  bool finished();
  bool poll_once(StopSignals& signals);
  bool more_to_do() const;
  std::string own_id(std::string_view purpose);

  Session& session_;
  McpSession about_;
  DaemonLink link_;
  LineReader in_;
  ByteWriter out_;
  bool host_gone_ = false;          // the host has stopped reading
  bool host_lines_left_ = false;    // lines were read but not processed, since too much data was queued
  bool daemon_lines_left_ = false;  // the same for lines of the daemon
  Time drain_until_{};              // set after the end of the host's input

  std::int64_t connection_ = 0;  // current connection; 0: none
  bool reconnected_ = false;     // an earlier connection was in use
  bool called_ = false;          // the host has called a tool, so the session may have a run
  bool ready_ = false;           // the host's lines can be sent
  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::map<std::string, InFlight> in_flight_;  // key: id_key
  std::set<std::string> asked_by_daemon_;      // ids of the daemon's requests on this connection

  // Messages that are repeated on the next connection.
  std::string initialize_;    // request of the host, after it was answered
  std::string initializing_;  // the same while it is in flight
  std::string initialized_;   // the notification
  std::map<std::string, std::string>
      subscriptions_;  // subscriptions that the daemon accepted: uri → params of resources/subscribe
  std::string replay_id_;
  std::set<std::string> own_ids_;  // ids of internal requests
  std::int64_t own_requests_ = 0;

  // A line over the limit.
  std::string cut_beginning_;
  std::string cut_end_;
  std::size_t cut_bytes_ = 0;
};

}  // namespace muniment::cli
