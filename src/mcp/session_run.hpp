// The run of an MCP session: each tool call becomes a tool.called and a tool.returned, so that `muniment run show`
// lists what a host's agent did. The first call starts the run. The session does not wait for these events; the next
// result reports a failure to record them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "mcp/native.hpp"

namespace muniment::mcp {

class SessionRun {
 public:
  SessionRun(Clock& clock, Native& native, bool record, std::string run_id);
  ~SessionRun();

  struct Settings {
    bool record = false;
    std::string run_id;  // empty: made by the session
    std::string agent;   // empty: the client's name
    std::string cwd;
    std::string labels;   // a JSON object, or empty
    bool resume = false;  // an earlier connection had the session, so its run exists unless the model ended it
  };
  void configure(Settings settings);

  // Sets the client's name and version, for the agent of a run that is started later. Resumes a run of an earlier
  // connection at once.
  void introduce(const json::Value& client_info);
  // Id of the open run; empty: none.
  const std::string& id() const { return open_ ? settings_.run_id : none_; }

  // Calls `then` once run.start is answered, with or without success, or at once if it is not in progress. Before the
  // answer, a reading method would not find the run.
  void when_started(std::function<void()> then);

  // Starts the run if none is open. `arguments` is JSON text. Returns the call's id for `returned`.
  std::string called(std::string_view tool, std::string_view arguments);
  // `status` is one of tool.returned's.
  void returned(std::string_view call_id, std::string_view status, std::string_view text,
                std::optional<std::int64_t> duration_us);
  // Call this after the host ended the run: the next call starts a new run.
  void was_ended();
  void end();
  // True if the id came from outside: its owner can continue the run in another session.
  bool named() const { return !chosen_id_.empty(); }
  // Stops recording without ending the run.
  void leave_open() { open_ = false; }

  // Returns the warning for the next result about events that were not recorded: once, or as long as the run is
  // stopped; empty: none.
  std::string take_warning();
  bool idle() const { return state_->in_flight == 0; }

 private:
  void open();
  void start();
  void follow_ended();
  void append(std::string_view type, std::string body);
  void send(std::string_view method, std::string params);

  struct State {  // shared with the replies that are still outstanding
    void take(const NativeReply& reply, bool starts);
    std::string problem;       // the first problem; later ones usually follow from it
    std::string stopped;       // reason why the run is stopped and refuses events
    bool not_started = false;  // run.start failed: the next call sends it again
    std::size_t in_flight = 0;
    bool starting = false;
    std::vector<std::function<void()>> waiting;  // functions that wait for run.start
    std::function<void()> run_has_ended;         // called if run.start was refused because the run has ended
  };

  Clock& clock_;
  Native& native_;
  Settings settings_;
  const std::string none_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::int64_t calls_ = 0;
  std::int64_t parts_ = 1;  // number of runs of the session; the id of a later run ends with it
  std::string chosen_id_;   // id from outside; empty: none
  bool open_ = false;
  std::string client_;  // JSON: name and version of the agent
};

}  // namespace muniment::mcp
