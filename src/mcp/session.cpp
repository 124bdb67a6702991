// Admits messages of a host and dispatches them to their methods.
#include "mcp/session.hpp"

#include <fmt/format.h>

#include "base/json/message_skim.hpp"
#include "base/limits.hpp"
#include "mcp/methods.hpp"

namespace muniment::mcp {
namespace {

constexpr std::chrono::seconds hand_over_after{60};  // a host's own limit is rarely shorter

}  // namespace

Session::Session(Server& server, Native& native, SessionOptions options, Send send)
    : server_(server),
      native_(native),
      options_(std::move(options)),
      send_(std::move(send)),
      run_(server.clock(), native, options_.record, options_.run_id),
      subscriptions_(*this) {}

// A native reply may own a call for longer than the session exists.
Session::~Session() {
  for (const auto& [id, call] : std::exchange(calls_, {})) call->forget();
}

void Session::receive(std::string text) {
  if (!takes_batches() || !json::is_batch(text)) return receive(parse_message(std::move(text)));
  receive_batch(text, fmt::format("{}{}", batch_key, next_batch_++));
}

void Session::receive(const Parsed& parsed) {
  if (closed_) return;
  if (parsed.failure)
    return send({error_message(parsed.id, *parsed.failure), parsed.id, !parsed.id.empty(), parsed.failure->code});
  switch (parsed.message->kind) {
    case MessageKind::request: return serve(parsed.message);
    case MessageKind::notification: return take_notification(*parsed.message);
    case MessageKind::response: return take_response(*parsed.message);
  }
}

bool Session::receive_batch(std::string_view text, const std::string& key) {
  if (closed_) return false;
  Batch read = split_batch(text);
  if (read.failure) {
    send_({error_message({}, *read.failure), key, true, read.failure->code});
    return true;
  }
  const auto batch = std::make_shared<Waiting>(Waiting{.key = key});
  const bool refused = read.messages.size() > limits::mcp_batch_messages_max;
  for (std::string& message : read.messages) receive_one(batch, std::move(message), refused);
  const bool answers = batch->left > 1 || !batch->answers.empty();
  finish_one(*batch);
  return answers;
}

void Session::receive_one(const WaitingPtr& batch, std::string text, bool refused) {
  Parsed parsed = parse_message(std::move(text));
  if (parsed.message && parsed.message->kind != MessageKind::request) {
    if (!refused) receive(parsed);
    return;
  }
  const auto refuse = [&](std::string why) { parsed.failure = Failure{invalid_request, std::move(why)}; };
  if (refused) {
    refuse(fmt::format("the batch has over {} messages, the limit. Send smaller batches.",
                       limits::mcp_batch_messages_max));
  } else if (parsed.message && parsed.message->method == "initialize") {
    refuse("initialize cannot be part of a batch.");
  } else if (parsed.message && calls_.contains(parsed.id)) {
    refuse(fmt::format("id {}: a request with this id is in progress.", parsed.id));
  }
  if (parsed.failure) return batch->answers.push_back(error_message(parsed.id, *parsed.failure));
  ++batch->left;
  batches_[parsed.id] = batch;
  serve(parsed.message);
}

// Sends the answers of the batch after its last one.
void Session::finish_one(Waiting& batch) {
  if (--batch.left > 0 || batch.answers.empty() || closed_) return;
  send_({fmt::format("[{}]", fmt::join(batch.answers, ",")), batch.key, true});
}

void Session::send(Outgoing message) {
  const auto found = batches_.find(message.request);
  if (message.request.empty() || found == batches_.end()) return send_(std::move(message));
  const WaitingPtr batch = found->second;
  if (!message.last) {
    message.request = batch->key;
    return send_(std::move(message));
  }
  batches_.erase(found);
  batch->answers.push_back(std::move(message.text));
  finish_one(*batch);
}

void Session::serve(const MessagePtr& message) {
  const auto refuse = [&](const Failure& failure) {
    send({error_message(message->id, failure), message->id, true, failure.code});
  };
  if (!bad_settings_.empty()) return refuse({invalid_params, bad_settings_});
  if (calls_.contains(message->id)) {
    // Not the answer of the request in progress, which may be part of a batch.
    const Failure failure{invalid_request, fmt::format("id {}: a request with this id is in progress.", message->id)};
    return send_({error_message(message->id, failure), message->id, true, failure.code});
  }
  if (calls_.size() >= limits::mcp_calls_per_session_max) {
    return refuse({internal_error, fmt::format("{} requests are in progress, limit {}. Wait for an answer.",
                                               calls_.size(), limits::mcp_calls_per_session_max)});
  }
  constexpr std::size_t bytes_max = limits::request_bytes_in_flight_per_connection_max;
  if (bytes_in_progress_ + message->text.size() > bytes_max) {
    return refuse({internal_error, fmt::format("the requests in progress have {} bytes, limit {}. Wait for an answer.",
                                               bytes_in_progress_ + message->text.size(), bytes_max)});
  }
  const Revision revision = revision_of(*message);
  if (auto failure = check_revision(*this, *message, revision)) return refuse(*std::move(failure));
  const Method* method = find_method(message->method, revision);
  if (method == nullptr || (server_.options().only_tools() && !method->always))
    return refuse({method_not_found, fmt::format("unknown method {}.", json::quote(message->method.substr(0, 100)))});
  const auto call = std::make_shared<Call>(*this, message, revision, server_.clock().monotonic());
  calls_.emplace(message->id, call);
  bytes_in_progress_ += message->text.size();
  method->function(call);
}

void Session::finished(const Call& call) {
  const auto found = calls_.find(call.message().id);
  if (found == calls_.end() || found->second.get() != &call) return;
  bytes_in_progress_ -= call.message().text.size();
  const std::string id = call.message().id;
  calls_.erase(found);
  if (auto batch = batches_.extract(id)) finish_one(*batch.mapped());  // cancelled, without an answer
}

void Session::take_notification(const Message& message) {
  if (message.method == "notifications/cancelled") {
    const auto found = calls_.find(id_text(message.params()["requestId"]));
    if (found == calls_.end() || found->second->message().method == "initialize") return;
    const CallPtr call = found->second;
    if (!call->has_handle()) call->cancel();
  } else if (message.method == "muniment/session") {
    take_settings(message.params());
  }
}

// Sent by `muniment mcp` before the host's first message.
void Session::take_settings(const json::Value& params) {
  SessionRun::Settings settings;
  settings.record = params["record"].as_bool().value_or(options_.record);
  settings.run_id = params["run_id"].string_or("");
  settings.agent = params["agent"].string_or("");
  settings.cwd = params["cwd"].string_or("");
  settings.resume = params["resume"].as_bool().value_or(false);
  if (params["labels"].is(json::Kind::object)) settings.labels = std::string(params["labels"].source());
  native_.set_working_folder(settings.cwd);
  review_ = review_ || params["review"].as_bool().value_or(false);  // a host cannot turn it off
  run_.configure(std::move(settings));
  std::vector<std::string> folders;
  for (const json::Value folder : params["files"]) folders.push_back(folder.string_or(""));
  if (folders.size() > limits::mcp_folders_max) {
    bad_settings_ = fmt::format("--files: {} folders, limit {}.", folders.size(), limits::mcp_folders_max);
    return;
  }
  native_.add_folders(folders);
  if (params["toolsets"].size() == 0) return;
  std::vector<std::string> added;
  for (const json::Value name : params["toolsets"]) added.push_back(name.string_or(""));
  if (const Status known = check_toolsets(added, "--toolset"); !known) bad_settings_ = known.error().message;
  ServerOptions offer = server_.options();
  offer.toolsets.insert(offer.toolsets.end(), added.begin(), added.end());
  own_tools_ = offered_tools(offer);
}

void Session::take_response(const Message& message) {
  const auto found = asked_.find(id_text(message.root()["id"]));
  if (found == asked_.end()) return;
  const auto done = std::move(found->second);
  asked_.erase(found);
  done(message);
}

void Session::ask(const Call& call, std::string_view method, std::string_view params,
                  std::function<void(const Message&)> done) {
  const std::string id = json::quote(fmt::format("muniment-{}", next_question_++));
  asked_.emplace(id, std::move(done));
  send({request_message(id, method, params), call.message().id});
}

void Session::notified(const json::Value& notification) { subscriptions_.notified(notification); }

void Session::introduce(const json::Value& client_info) { run_.introduce(client_info); }

void Session::tick(Monotonic now) {
  std::vector<CallPtr> calls;
  for (const auto& [id, call] : calls_) calls.push_back(call);
  for (const CallPtr& call : calls) {
    if (call->answered() || !call->may_take_long) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - call->began()).count();
    if (seconds >= 1) call->progress(static_cast<double>(seconds), 0, fmt::format("{} s", seconds));
    if (now - call->began() >= hand_over_after) hand_over(call);
  }
  subscriptions_.tick(now);
}

void Session::close() {
  if (std::exchange(closed_, true)) return;
  cancel_all();
  run_.end();
}

void Session::abandon() {
  if (!run_.named()) return close();
  if (std::exchange(closed_, true)) return;
  run_.leave_open();
  cancel_all();
}

void Session::cancel_all() {
  std::vector<CallPtr> calls;
  for (const auto& [id, call] : calls_) {
    if (!call->has_handle()) calls.push_back(call);
  }
  for (const CallPtr& call : calls) call->cancel();
  subscriptions_.close();
  asked_.clear();
}

}  // namespace muniment::mcp
