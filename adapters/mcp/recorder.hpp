// Records the tool calls of one MCP session in a run: starts the run, appends events, ends it, and annotates it with
// the number of calls that could not be recorded.
//
// Every `record_` function takes a token. `next_completed` returns it after the event is durable or has failed, which
// is immediate while the daemon is unavailable. An event without a timely acknowledgement may still be recorded: its
// token is returned a second time when the outcome is known.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/mcp/call_record.hpp"
#include "adapters/mcp/daemon_link.hpp"
#include "adapters/mcp/record_queue.hpp"
#include "base/clock.hpp"

namespace muniment::cli {

struct RecorderOptions {
  CallRules rules;
  std::string run_id;  // id of an existing run; empty: start a run for the session
  std::string agent;   // empty: the host's name
  std::string labels;  // labels of a started run: a JSON object
  std::string goal;
  std::string folder;
  bool required = false;  // forward messages only after they are recorded
};

struct Recorded {
  std::uint64_t token = 0;
  std::string problem;  // reason for a failure; empty: recorded
  bool late = false;    // the token was returned before with a problem
};

class Recorder {
 public:
  Recorder(Session& session, RecorderOptions options);

  // Starts the run when the host is known. Only the first call has an effect.
  void begin(std::string_view client_name, std::string_view client_version);
  // Records a description of the server once.
  void identify_server(std::string_view name, std::string_view version, std::string_view protocol);
  bool knows_server() const { return knows_server_; }

  void record_call(const ToolCall& call, std::string_view params, std::uint64_t token);
  void record_return(DraftEvent event, std::uint64_t token);
  // Counts the result of an unrecorded call without recording it.
  void lose_return() { ++lost_returns_; }
  // Notes a line of the host or the server that may contain unrecorded calls or results: it was passed on or withheld.
  void note_line(bool from_host, std::string_view doubt);
  void end(std::string_view outcome, std::string_view why);

  // Returns whether the token was returned with a problem and the event may still be recorded.
  bool in_doubt(std::uint64_t token) const { return in_doubt_.contains(token); }
  // Describes calls and results that are neither recorded nor noted in the run; empty: none.
  std::string unrecorded() const;

  void step();
  std::optional<Recorded> next_completed();
  bool idle() const { return queue_.empty() && completed_.empty() && in_doubt_.empty(); }
  int wait(std::vector<pollfd>& polled) const;
  const CallRules& rules() const { return options_.rules; }

 private:
  enum class RunState { none, starting, open };

  void ensure_run();
  void record_event(DraftEvent event, std::uint64_t token);
  void submit_event(DraftEvent event, std::uint64_t token);
  std::uint64_t submit_note(const std::string& text);  // returns its token
  void take_completed(CompletedRequest& completed);
  void take_late(const CompletedRequest& completed);
  void note_lines(bool all);
  bool retry_reduced(CompletedRequest& completed);
  void lost(const DraftEvent& event, std::uint64_t token, const std::string& why);
  void recovered();
  std::string gap() const;
  void note_gap();
  std::uint64_t own_token() { return own_tokens_++; }

  // An event in flight, by token.
  struct Pending {
    std::uint64_t token = 0;
    DraftEvent event;
    bool reduced = false;
  };

  Session& session_;
  RecorderOptions options_;
  DaemonLink link_;
  RecordQueue queue_;
  std::deque<Pending> pending_;
  std::deque<Recorded> completed_;
  RunState run_ = RunState::none;
  bool own_run_ = false;
  bool began_ = false;
  bool knows_server_ = false;
  std::string client_version_;
  std::uint64_t run_token_ = 0;
  std::uint64_t end_token_ = 0;
  std::uint64_t own_tokens_ = std::uint64_t{1} << 62;  // tokens of requests other than call events

  // Doubtful lines by sender, "host" or "server".
  struct DoubtedLines {
    std::uint64_t count = 0;
    std::string why;     // reason for the first line
    bool noted = false;  // the first line was noted
  };
  std::map<std::string_view, DoubtedLines> doubted_;

  // The current outage, from the first lost event.
  bool outage_ = false;
  std::uint64_t lost_calls_ = 0;
  std::uint64_t lost_returns_ = 0;
  std::map<std::uint64_t, bool> in_doubt_;  // lost events that may still be recorded: token → is a call
  std::uint64_t undecided_ = 0;             // lost events whose outcome remains unknown
  // The note about the last gap, until it is acknowledged.
  std::uint64_t gap_token_ = 0;
  std::uint64_t noted_calls_ = 0;
  std::uint64_t noted_returns_ = 0;
  std::string lost_since_;
  std::string lost_why_;
  std::chrono::steady_clock::time_point next_probe_{};
};

}  // namespace muniment::cli
