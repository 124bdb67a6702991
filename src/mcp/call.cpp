// Answers a host's request and runs its native requests.
#include "mcp/call.hpp"

#include <algorithm>
#include <array>

#include "mcp/session.hpp"

namespace muniment::mcp {
namespace {

// Members inserted before the result's own ones.
std::string stateless_result(std::string_view type, std::string_view server_info, std::string_view result,
                             const std::optional<Caching>& caching) {
  json::Writer writer;
  writer.begin_object().member("resultType", type);
  writer.key("_meta").begin_object().raw_member("io.modelcontextprotocol/serverInfo", server_info).end_object();
  if (caching) writer.member("ttlMs", caching->ttl_ms).member("cacheScope", caching->anyone ? "public" : "private");
  std::string text = std::move(writer).text();
  const std::string_view members = result.substr(1);  // after the brace
  if (!members.starts_with('}')) text += ',';
  return text.append(members);
}

constexpr std::array<std::string_view, 8> log_levels{"debug", "info",     "notice", "warning",
                                                     "error", "critical", "alert",  "emergency"};

std::size_t rank_of(std::string_view level) {
  return static_cast<std::size_t>(std::find(log_levels.begin(), log_levels.end(), level) - log_levels.begin());
}

}  // namespace

Failure failure_of(const json::Value& native_error) {
  constexpr std::array<std::string_view, 5> of_daemon{"over_budget", "unavailable", "deadline_exceeded", "corrupt",
                                                      "system_error"};
  const std::string code = native_error["data"]["code"].string_or("");
  const bool own = std::find(of_daemon.begin(), of_daemon.end(), code) != of_daemon.end();
  return {own ? internal_error : invalid_params, native_error["message"].string_or("")};
}

bool is_log_level(std::string_view level) { return rank_of(level) < log_levels.size(); }

Call::Call(Session& session, MessagePtr message, Revision revision, Monotonic began)
    : session_(session), message_(std::move(message)), revision_(revision), began_(began) {}

json::Value Call::client_capabilities() const {
  if (revision_ == Revision::stateless) return message_->meta()["io.modelcontextprotocol/clientCapabilities"];
  const MessagePtr& initialize = session_.opened().initialize;
  return initialize ? initialize->params()["capabilities"] : json::Value();
}

json::Value Call::client_info() const {
  if (revision_ == Revision::stateless) return message_->meta()["io.modelcontextprotocol/clientInfo"];
  const MessagePtr& initialize = session_.opened().initialize;
  return initialize ? initialize->params()["clientInfo"] : json::Value();
}

void Call::send(std::string text, bool last, int error) { session_.send({std::move(text), message_->id, last, error}); }

void Call::answer(std::string_view result, std::optional<Caching> caching) {
  if (!handle_.empty()) {
    session_.server().handles().finish(handle_, std::string(result));
    return end();
  }
  if (std::exchange(answered_, true)) return;
  send_result(result, caching);
  end();
}

void Call::fail(const Failure& failure) {
  if (!handle_.empty()) {
    json::Writer result;
    result.begin_object().key("content").begin_array().begin_object().member("type", "text");
    result.member("text", failure.message).end_object().end_array().member("isError", true).end_object();
    session_.server().handles().finish(handle_, std::move(result).text());
    return end();
  }
  if (std::exchange(answered_, true)) return;
  send(error_message(message_->id, failure), true, failure.code);
  end();
}

void Call::require_input(std::string_view requests, std::string_view state) {
  if (std::exchange(answered_, true)) return;
  json::Writer result;
  result.begin_object();
  if (!requests.empty()) result.raw_member("inputRequests", requests);
  if (!state.empty()) result.member("requestState", state);
  result.end_object();
  send(result_message(message_->id,
                      stateless_result("input_required", session_.server().info(), result.text(), std::nullopt)),
       true);
  end();
}

void Call::hand_over(std::string handle, std::string_view interim) {
  if (std::exchange(answered_, true)) return;
  send_result(interim, std::nullopt);
  handle_ = std::move(handle);
}

void Call::send_result(std::string_view result, const std::optional<Caching>& caching) {
  send(result_message(message_->id, revision_ == Revision::stateless
                                        ? stateless_result("complete", session_.server().info(), result, caching)
                                        : std::string(result)),
       true);
}

void Call::cancel() {
  answered_ = true;
  for (const std::int64_t number : std::exchange(native_requests_, {})) session_.native().cancel(number);
  end();
}

void Call::forget() {
  answered_ = ended_ = true;
  on_end = nullptr;
}

void Call::end() {
  if (std::exchange(ended_, true)) return;
  if (on_end) std::exchange(on_end, nullptr)();
  session_.finished(*this);
}

void Call::notify(std::string_view method, std::string_view params) {
  if (!answered_) send(notification_message(method, params), false);
}

// In 2026-07-28 a request names the log level that it wants; without one it gets no log.
void Call::log(std::string_view level, std::string_view data) {
  std::string wanted = session_.opened().log_level;
  if (revision_ == Revision::stateless) wanted = message_->meta()["io.modelcontextprotocol/logLevel"].string_or("");
  if (!is_log_level(wanted) || rank_of(level) < rank_of(wanted)) return;
  notify("notifications/message", json::Writer()
                                      .begin_object()
                                      .member("level", level)
                                      .member("logger", "muniment")
                                      .raw_member("data", data)
                                      .end_object()
                                      .text());
}

void Call::progress(double done, double total, std::string_view text) {
  const json::Value token = message_->meta()["progressToken"];
  if (!token.is(json::Kind::string) && !token.is(json::Kind::number)) return;
  json::Writer params;
  params.begin_object().raw_member("progressToken", token.source()).member("progress", done);
  if (total > 0) params.member("total", total);
  if (!text.empty()) params.member("message", text);
  notify("notifications/progress", params.end_object().text());
}

void Call::native(std::string_view method, std::string params, std::function<void(const NativeReply&)> done) {
  if (ended_) return;
  std::weak_ptr<Call> weak = weak_from_this();
  // Becomes nullopt once the reply has arrived
  const auto number = std::make_shared<std::optional<std::int64_t>>(0);
  const std::int64_t sent = session_.native().request(
      method, std::move(params), [weak, number, done = std::move(done)](const NativeReply& reply) {
        const std::int64_t replied = std::exchange(*number, std::nullopt).value_or(0);
        const auto call = weak.lock();
        if (!call || call->ended_) return;
        std::erase(call->native_requests_, replied);
        done(reply);
      });
  if (!*number) return;
  *number = sent;
  native_requests_.push_back(sent);
}

}  // namespace muniment::mcp
