// Records the tool calls of one MCP session in a run: starts the run, appends what happens, ends it, and notes in the
// run how many calls were lost while nothing could be recorded.
//
// Every `record_` function takes a token. `next_settled` gives it back once the event is durable, or once it is known
// that it is not; while the daemon is away that is at once. An event that the daemon did not acknowledge in time may be
// recorded all the same: its token is given back once more when that is known.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "cli/mcp/call_record.hpp"
#include "cli/mcp/daemon_link.hpp"
#include "cli/mcp/record_queue.hpp"

namespace muniment::cli {

struct RecorderOptions {
  CallRules rules;
  std::string run_id;  // of a run that is there; empty: a run is started for the session
  std::string agent;   // empty: the host's name
  std::string labels;  // of a run that is started: a JSON object
  std::string goal;
  std::string folder;
  bool required = false;  // nothing passes before it is recorded
};

struct Recorded {
  std::uint64_t token = 0;
  std::string problem;  // why it is not recorded; empty: it is
  bool late = false;    // it had been given back with a problem
};

class Recorder {
 public:
  Recorder(Session& session, RecorderOptions options);

  // The host is known: from now on there is a run. The first call counts.
  void begin(std::string_view client_name, std::string_view client_version);
  // Describes the server, once.
  void identify_server(std::string_view name, std::string_view version, std::string_view protocol);
  bool knows_server() const { return knows_server_; }

  void record_call(const ToolCall& call, std::string_view params, std::uint64_t token);
  void record_return(DraftEvent event, std::uint64_t token);
  // The result of a call that is not recorded: it is counted, and nothing is recorded.
  void lose_return() { ++lost_returns_; }
  // A line of the host or the server that may have held calls or results which are not recorded: it passed all the
  // same, or was withheld for that.
  void note_line(bool from_host, std::string_view doubt);
  void end(std::string_view outcome, std::string_view why);

  // Was it given back with a problem, and may it be recorded all the same?
  bool in_doubt(std::uint64_t token) const { return in_doubt_.contains(token); }
  // Calls and results that are neither recorded nor noted in the run, in words; empty: none.
  std::string unrecorded() const;

  void step();
  std::optional<Recorded> next_settled();
  bool idle() const { return queue_.empty() && settled_.empty() && in_doubt_.empty(); }
  int wait(std::vector<pollfd>& polled) const;
  const CallRules& rules() const { return options_.rules; }

 private:
  enum class RunState { none, starting, open };

  void ensure_run();
  void record_event(DraftEvent event, std::uint64_t token);
  void submit_event(DraftEvent event, std::uint64_t token);
  std::uint64_t submit_note(const std::string& text);  // returns its token
  void take_settled(SettledRequest& settled);
  void take_late(const SettledRequest& settled);
  void note_lines(bool all);
  bool retry_reduced(SettledRequest& settled);
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
  std::deque<Recorded> settled_;
  RunState run_ = RunState::none;
  bool own_run_ = false;
  bool began_ = false;
  bool knows_server_ = false;
  std::string client_version_;
  std::uint64_t run_token_ = 0;
  std::uint64_t end_token_ = 0;
  std::uint64_t own_tokens_ = std::uint64_t{1} << 62;  // of requests that are no events of a call

  // Lines that were doubted, by whose they are: "host" or "server".
  struct DoubtedLines {
    std::uint64_t count = 0;
    std::string why;     // of the first
    bool noted = false;  // that one
  };
  std::map<std::string_view, DoubtedLines> doubted_;

  // The outage, from the first event that was lost.
  bool outage_ = false;
  std::uint64_t lost_calls_ = 0;
  std::uint64_t lost_returns_ = 0;
  std::map<std::uint64_t, bool> in_doubt_;  // of these the events that may be recorded all the same: token → is a call
  std::uint64_t undecided_ = 0;             // of these the ones that stay in doubt
  // The last gap's note, until it is acknowledged.
  std::uint64_t gap_token_ = 0;
  std::uint64_t noted_calls_ = 0;
  std::uint64_t noted_returns_ = 0;
  std::string lost_since_;
  std::string lost_why_;
  std::chrono::steady_clock::time_point next_probe_{};
};

}  // namespace muniment::cli
