// One request of a host, from its message to its answer. Transport thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "mcp/message.hpp"
#include "mcp/native.hpp"

namespace muniment::mcp {

class Session;

enum class Revision : std::uint8_t { initialized, stateless };  // 2025-11-25 and earlier; 2026-07-28

// Time for which a client may cache a result (2026-07-28).
struct Caching {
  std::int64_t ttl_ms = 0;
  bool anyone = false;  // the result is the same for every client
};

// Caching of results that are equal for every client while the daemon runs.
inline constexpr Caching cached_for_an_hour{.ttl_ms = 3'600'000, .anyone = true};

class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(Session& session, MessagePtr message, Revision revision, Monotonic began);

  const Message& message() const { return *message_; }
  const MessagePtr& message_ptr() const { return message_; }
  json::Value params() const { return message_->params(); }
  Session& session() const { return session_; }
  Revision revision() const { return revision_; }
  Monotonic began() const { return began_; }
  bool answered() const { return answered_; }
  // The client's capabilities and name, from this request or from `initialize`.
  json::Value client_capabilities() const;
  json::Value client_info() const;

  // Sends the answer, once; later ones are dropped. `result` is the text of a JSON object.
  void answer(std::string_view result, std::optional<Caching> caching = {});
  void fail(const Failure& failure);
  // Asks the client for input (2026-07-28). `requests` maps names to requests; the client returns `state` with the
  // answers.
  void require_input(std::string_view requests, std::string_view state);
  // Call this if the host needs no answer: cancels the native requests.
  void cancel();
  // Call this after the session has ended: drops all messages that are not sent yet.
  void forget();

  // Sends a notification that belongs to this request.
  void notify(std::string_view method, std::string_view params);
  void log(std::string_view level, std::string_view data);
  // Sends nothing if the host did not request progress. `total` 0: unknown.
  void progress(double done, double total, std::string_view text);

  // Sends a native request for this call; `done` is not called after the call is cancelled.
  void native(std::string_view method, std::string params, std::function<void(const NativeReply&)> done);

  // Answers now with `interim`; the final answer is kept under the handle (Server::handles).
  void hand_over(std::string handle, std::string_view interim);
  bool has_handle() const { return !handle_.empty(); }
  bool may_take_long = false;  // true: a slow call is handed over, as for a tool
  // Called once, after the call was answered, failed or cancelled.
  std::function<void()> on_end;

 private:
  void send(std::string text, bool last, int error = 0);
  void send_result(std::string_view result, const std::optional<Caching>& caching);
  void end();

  Session& session_;
  const MessagePtr message_;
  const Revision revision_;
  const Monotonic began_;
  std::vector<std::int64_t> native_requests_;
  std::string handle_;
  bool answered_ = false;
  bool ended_ = false;
};

// Converts a native error to a failure: internal_error unless the request is at fault.
Failure failure_of(const json::Value& native_error);

using CallPtr = std::shared_ptr<Call>;

// Returns whether it is the MCP name of a level of RFC 5424.
bool is_log_level(std::string_view level);

}  // namespace muniment::mcp
