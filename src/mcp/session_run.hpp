// The run of an MCP session: each tool call becomes a tool.called and a tool.returned of it, so that `muniment run
// show` tells what a host's agent did. Nothing waits for these events; a failure to record is told with the next
// result.
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
  ~SessionRun() { state_->waiting.clear(); }

  struct Settings {
    bool record = false;
    std::string run_id;  // empty: made by the session
    std::string agent;   // empty: the client's name
    std::string cwd;
    std::string labels;   // a JSON object, or empty
    bool resume = false;  // the run was begun before the daemon restarted
  };
  void configure(Settings settings);

  // Starts the run at the first message that names the client; later ones change nothing.
  void begin(const json::Value& client_info);
  // Id of the open run; empty: none.
  const std::string& id() const { return open_ ? settings_.run_id : none_; }

  // Calls `then` when run.start is answered, with success or not; at once where it is not on its way. A method that
  // only reads does not find the run before.
  void when_started(std::function<void()> then);

  // `arguments` is JSON text. Returns the call's id for `returned`.
  std::string called(std::string_view tool, std::string_view arguments);
  // `status` is one of tool.returned's.
  void returned(std::string_view call_id, std::string_view status, std::string_view text,
                std::optional<std::int64_t> duration_us);
  // The host ended the run by itself: the next call begins another one.
  void was_ended();
  void end();
  // The run's id came from outside: whoever gave it can continue the run in another session.
  bool named() const { return chosen_id_; }
  // Records nothing more, and does not end the run.
  void leave_open() { open_ = false; }

  // Why something was not recorded, once; empty: all was.
  std::string take_problem() { return std::exchange(state_->problem, {}); }
  bool settled() const { return state_->in_flight == 0; }

 private:
  void start();
  void append(std::string_view type, std::string body);
  void send(std::string_view method, std::string params);

  struct State {  // outlives the run in the replies that are still to come
    void take(const NativeReply& reply, bool starts);
    std::string problem;       // the first; what follows from it says less
    bool not_started = false;  // run.start failed: the next call sends it again
    std::size_t in_flight = 0;
    bool starting = false;
    std::vector<std::function<void()>> waiting;  // for the start
  };

  Clock& clock_;
  Native& native_;
  Settings settings_;
  const std::string none_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::int64_t calls_ = 0;
  bool open_ = false;
  bool chosen_id_ = false;  // settings_.run_id came from outside
  std::string client_;      // JSON: name and version of the agent
};

}  // namespace muniment::mcp
