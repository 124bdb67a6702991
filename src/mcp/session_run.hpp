// The run of an MCP session: each tool call becomes a tool.called and a tool.returned of it, so that `muniment run
// show` tells what a host's agent did. The first call starts it. Nothing waits for these events; a failure to record is
// told with the next result.
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
    bool resume = false;  // the session was connected before: its run is there, unless the model ended it
  };
  void configure(Settings settings);

  // The client's name and version, for the agent of a run that is started later. A run of an earlier connection is
  // taken up at once.
  void introduce(const json::Value& client_info);
  // Id of the open run; empty: none.
  const std::string& id() const { return open_ ? settings_.run_id : none_; }

  // Calls `then` when run.start is answered, with success or not; at once where it is not on its way. A method that
  // only reads does not find the run before.
  void when_started(std::function<void()> then);

  // Starts the run, if none is open. `arguments` is JSON text. Returns the call's id for `returned`.
  std::string called(std::string_view tool, std::string_view arguments);
  // `status` is one of tool.returned's.
  void returned(std::string_view call_id, std::string_view status, std::string_view text,
                std::optional<std::int64_t> duration_us);
  // The host ended the run by itself: the next call begins another one.
  void was_ended();
  void end();
  // The run's id came from outside: whoever gave it can continue the run in another session.
  bool named() const { return !chosen_id_.empty(); }
  // Records nothing more, and does not end the run.
  void leave_open() { open_ = false; }

  // What the next result says of what is not recorded, once, or as long as the run is stopped; empty: nothing.
  std::string take_warning();
  bool settled() const { return state_->in_flight == 0; }

 private:
  void open();
  void start();
  void follow_ended();
  void append(std::string_view type, std::string body);
  void send(std::string_view method, std::string params);

  struct State {  // outlives the run in the replies that are still to come
    void take(const NativeReply& reply, bool starts);
    std::string problem;       // the first; what follows from it says less
    std::string stopped;       // why the run is stopped: it refuses events
    bool not_started = false;  // run.start failed: the next call sends it again
    std::size_t in_flight = 0;
    bool starting = false;
    std::vector<std::function<void()>> waiting;  // for the start
    std::function<void()> run_has_ended;         // run.start was refused for that
  };

  Clock& clock_;
  Native& native_;
  Settings settings_;
  const std::string none_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::int64_t calls_ = 0;
  std::int64_t parts_ = 1;  // runs of the session: those after the first have its id and their number
  std::string chosen_id_;   // from outside; empty: none
  bool open_ = false;
  std::string client_;  // JSON: name and version of the agent
};

}  // namespace muniment::mcp
