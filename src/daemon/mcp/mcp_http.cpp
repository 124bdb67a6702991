// Serves MCP requests over HTTP, with sessions (2025-11-25) and without (2026-07-28).
#include "daemon/mcp/mcp_http.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/json/message_skim.hpp"
#include "base/limits.hpp"
#include "mcp/methods.hpp"

namespace muniment::daemon {
namespace {

constexpr std::string_view endpoint = "/mcp";
constexpr std::string_view metrics_path = "/metrics";
constexpr std::string_view metrics_request = R"({"jsonrpc":"2.0","id":1,"method":"server.metrics","params":{}})";
constexpr std::chrono::hours unused_max{1};

std::string new_session_id() {
  std::string bytes(16, '\0');
  random_bytes(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  return to_hex(bytes);
}

http::Answer plain_failure(int status, std::string text) {
  return http_failure(status, {mcp::invalid_request, std::move(text)});
}

bool is_json(const http::Request& request) {
  const std::string type = request.header("Content-Type").value_or("");
  return http::equal_ignoring_case(std::string_view(type).substr(0, type.find_first_of("; \t")), "application/json");
}

bool takes(const http::Request& request, std::string_view type) {
  const auto accept = request.header("Accept");
  return !accept || accept->find(type) != std::string::npos || accept->find("*/*") != std::string::npos;
}

// Only programs of this machine reach such an address, and a page in a browser fails the checks of Host and Origin.
bool is_loopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }

// Returns the answer to a scrape for a reply to server.metrics.
http::Answer metrics_answer(const std::string& reply) {
  const auto document = json::parse(reply, limits::reply_depth_max);
  const json::Value result = document ? document->root()["result"] : json::Value();
  if (!result) return plain_failure(503, "the metrics are not available. Retry in a few seconds.");
  return {200, {{"Content-Type", result["content_type"].string_or("text/plain")}}, result["text"].string_or("")};
}

mcp::Outgoing unanswered(const std::string& id, std::string_view why) {
  const std::string_view named = id.starts_with(mcp::batch_key) ? std::string_view() : std::string_view(id);
  return {mcp::error_message(named, {mcp::internal_error, std::string(why)}), id, true, mcp::internal_error};
}

}  // namespace

McpHttp::McpHttp(McpHost& host, McpHttpOptions options) : host_(host), options_(std::move(options)) {}

McpHttp::~McpHttp() = default;

Status McpHttp::listen(uv_loop_t* loop) {
  http::Options options = options_.server;
  options.refuse = [this](const http::Request& request) { return refuse(request); };
  options.is_open_to_all = [this](const http::Request& request) {
    return request.path == metrics_path && !http::bearer_token_matches(request, options_.token);
  };
  ASSIGN_OR_RETURN(server_, http::Server::listen(loop, std::move(options),
                                                 [this](std::shared_ptr<http::Exchange> it) { serve(std::move(it)); }));
  hosts_ = {server_->port(), options_.hosts, "http_hosts"};
  return success();
}

void McpHttp::stop() {
  stopping_ = true;
  if (server_) server_->stop_accepting();
}

void McpHttp::end_all() {
  constexpr std::string_view why = "the daemon is stopping, and the outcome is unknown. Retry with the same ids.";
  for (const auto& [id, conversation] : std::map(conversations_)) end(conversation, why);
  for (const auto& [key, request] : std::exchange(stateless_, {})) {
    request.stream->send(unanswered(request.id, why));
    request.peer->close();
  }
}

bool McpHttp::answering() const { return server_ && server_->answering(); }

void McpHttp::close() {
  end_all();
  if (server_) server_->close();
}

gateway::Caller McpHttp::caller() {
  gateway::Caller caller = options_.caller;
  caller.connection = next_connection();
  return caller;
}

// Runs before the body is read.
std::optional<http::Answer> McpHttp::refuse(const http::Request& request) const {
  for (const Status& allowed : {check_host(request, hosts_), check_origin(request, hosts_)}) {
    if (!allowed) return plain_failure(403, allowed.error().message);
  }
  const bool is_scrape = request.path == metrics_path;
  if (!is_scrape && request.path != endpoint)
    return plain_failure(404, "not found. The MCP endpoint is /mcp, that of the metrics /metrics.");
  const bool needs_token = !options_.token.empty() && !(is_scrape && is_loopback(options_.server.address));
  if (needs_token && !http::bearer_token_matches(request, options_.token)) {
    http::Answer answer = plain_failure(
        401, request.header("Authorization") ? "the bearer token is wrong. The file http_token_file has the valid one."
                                             : "a bearer token is required. See the setting http_token_file.");
    answer.headers.push_back({"WWW-Authenticate", "Bearer"});
    return answer;
  }
  if (stopping_) {
    http::Answer answer = plain_failure(503, "the daemon is stopping. Retry in a few seconds.");
    answer.headers.push_back({"Connection", "close"});
    return answer;
  }
  if (is_scrape && request.method != "GET") {
    http::Answer answer = plain_failure(405, "use GET.");
    answer.headers.push_back({"Allow", "GET"});
    return answer;
  }
  if (request.method == "POST" || request.method == "GET" || request.method == "DELETE") return std::nullopt;
  http::Answer answer = plain_failure(405, "use POST, GET or DELETE.");
  answer.headers.push_back({"Allow", "POST, GET, DELETE"});
  return answer;
}

void McpHttp::serve(std::shared_ptr<http::Exchange> exchange) {
  if (exchange->request().path == metrics_path) return scrape(std::move(exchange));
  const std::string& method = exchange->request().method;
  if (method == "GET") return listen_to(exchange);
  if (method == "DELETE") return end_conversation(exchange);
  post(exchange);
}

void McpHttp::scrape(std::shared_ptr<http::Exchange> exchange) {
  const auto admitted =
      host_.dispatcher().admit(std::string(metrics_request), caller(),
                               [exchange](const std::string& line) { exchange->reply(metrics_answer(line)); });
  if (admitted.exchange) host_.dispatcher().run(admitted.exchange);
}

void McpHttp::post(const std::shared_ptr<http::Exchange>& exchange) {
  const http::Request& request = exchange->request();
  if (!is_json(request)) return exchange->reply(plain_failure(415, "Content-Type: expected application/json."));
  if (!takes(request, "application/json") || !takes(request, "text/event-stream"))
    return exchange->reply(plain_failure(406, "Accept: expected application/json and text/event-stream."));
  if (json::is_batch(request.body)) {
    const auto found = conversations_.find(request.header("Mcp-Session-Id").value_or(""));
    if (found != conversations_.end() && found->second->peer->session().takes_batches()) {
      if (const ConversationPtr conversation = find(exchange)) converse_batch(conversation, exchange);
      return;
    }
  }
  const mcp::Parsed parsed = mcp::parse_message(request.body);
  const auto version = request.header("MCP-Protocol-Version");
  if (parsed.failure) {
    // Clients of 2025-11-25 wait for the answer to an id, and read none from a reply with another status.
    const bool answers = !parsed.id.empty() && version != mcp::stateless_version;
    return exchange->reply(http_failure(answers ? 200 : 400, *parsed.failure, parsed.id));
  }
  if (version == mcp::stateless_version || mcp::revision_of(*parsed.message) == mcp::Revision::stateless)
    return serve_stateless(exchange, parsed);
  if (parsed.message->method == "initialize") return begin_conversation(exchange, parsed);
  if (const ConversationPtr conversation = find(exchange)) converse(conversation, exchange, parsed);
}

void McpHttp::serve_stateless(const std::shared_ptr<http::Exchange>& exchange, const mcp::Parsed& parsed) {
  if (parsed.message->kind != mcp::MessageKind::request) return exchange->reply(202, {}, "");
  auto failure = mcp::check_meta(*parsed.message);
  if (!failure) failure = check_headers(exchange->request(), *parsed.message);
  if (failure) return exchange->reply(http_failure(400, *failure, parsed.id));
  const auto stream = std::make_shared<HttpStream>(exchange, std::vector<http::Header>(), true);
  const auto leave = [this, key = stream.get()] {
    const auto found = stateless_.find(key);
    if (found == stateless_.end()) return;
    found->second.peer->close();
    stateless_.erase(found);
  };
  McpPeer::Link link;
  link.send = [stream, leave](const mcp::Outgoing& message) {
    stream->send(message);
    if (message.last) leave();
  };
  link.unread_bytes = [stream] { return stream->unread_bytes(); };
  const auto peer = host_.open(caller(), true, std::move(link));
  stateless_.emplace(stream.get(), Stateless{stream, peer, parsed.id});
  stream->on_closed = leave;  // closing the stream cancels its request
  peer->session().receive(parsed);
}

McpHttp::ConversationPtr McpHttp::find(const std::shared_ptr<http::Exchange>& exchange) {
  const auto refuse = [&](int status, std::string text) {
    exchange->reply(plain_failure(status, std::move(text)));
    return nullptr;
  };
  const auto version = exchange->request().header("MCP-Protocol-Version");
  if (version && !mcp::is_served(*version))
    return refuse(400, fmt::format("MCP-Protocol-Version: {} is not supported.", json::quote(version->substr(0, 100))));
  const auto id = exchange->request().header("Mcp-Session-Id");
  if (!id) return refuse(400, "Mcp-Session-Id: this header is required. Send initialize first.");
  const auto found = conversations_.find(*id);
  if (found == conversations_.end()) return refuse(404, "the session is unknown or has ended. Send initialize.");
  found->second->used = host_.server().clock().monotonic();
  return found->second;
}

void McpHttp::begin_conversation(const std::shared_ptr<http::Exchange>& exchange, const mcp::Parsed& parsed) {
  if (conversations_.size() >= limits::mcp_sessions_max) end_longest_unused();
  if (conversations_.size() >= limits::mcp_sessions_max) {
    return exchange->reply(plain_failure(503, fmt::format("{} sessions are in use, limit {}. End some with DELETE.",
                                                          conversations_.size(), limits::mcp_sessions_max)));
  }
  const auto conversation = std::make_shared<Conversation>();
  conversation->id = new_session_id();
  conversation->used = host_.server().clock().monotonic();
  std::weak_ptr<Conversation> weak = conversation;
  McpPeer::Link link;
  link.send = [weak](mcp::Outgoing message) { send(weak, std::move(message)); };
  link.unread_bytes = [weak] {
    const auto alive = weak.lock();
    return alive && !alive->listeners.empty() ? alive->listeners.front()->unread_bytes() : 0;
  };
  conversation->peer = host_.open(caller(), true, std::move(link));
  conversations_.emplace(conversation->id, conversation);
  converse(conversation, exchange, parsed);
  if (conversation->peer->session().opened().version.empty()) end(conversation, {});  // initialize was refused
}

void McpHttp::end_longest_unused() {
  ConversationPtr longest;
  for (const auto& [id, one] : conversations_) {
    if (!one->in_use() && (!longest || one->used < longest->used)) longest = one;
  }
  if (longest) end(std::move(longest), {});
}

void McpHttp::converse(const ConversationPtr& conversation, const std::shared_ptr<http::Exchange>& exchange,
                       const mcp::Parsed& parsed) {
  mcp::Session& session = conversation->peer->session();
  if (parsed.message->kind != mcp::MessageKind::request) {
    session.receive(parsed);
    return exchange->reply(202, {}, "");
  }
  std::vector<http::Header> headers{{"Mcp-Session-Id", conversation->id}};
  const auto stream = std::make_shared<HttpStream>(exchange, std::move(headers), false);
  if (!conversation->answers.emplace(parsed.id, stream).second) {
    return stream->send(
        {mcp::error_message(parsed.id, {mcp::invalid_request, "a request with this id is in progress."}), parsed.id,
         true, mcp::invalid_request});
  }
  // Closing the stream does not cancel the request, but its answer is dropped.
  stream->on_closed = [weak = std::weak_ptr(conversation), id = parsed.id] {
    if (const auto alive = weak.lock()) alive->answers.erase(id);
  };
  session.receive(parsed);
}

void McpHttp::converse_batch(const ConversationPtr& conversation, const std::shared_ptr<http::Exchange>& exchange) {
  const std::string key = fmt::format("{}{}", mcp::batch_key, next_batch_++);
  const auto stream =
      std::make_shared<HttpStream>(exchange, std::vector<http::Header>{{"Mcp-Session-Id", conversation->id}}, false);
  conversation->answers.emplace(key, stream);
  stream->on_closed = [weak = std::weak_ptr(conversation), key] {
    if (const auto alive = weak.lock()) alive->answers.erase(key);
  };
  if (conversation->peer->session().receive_batch(exchange->request().body, key)) return;
  conversation->answers.erase(key);
  exchange->reply(202, {}, "");
}

// Sends to the request's own stream, or to the host's listening stream if it has one.
void McpHttp::send(const std::weak_ptr<Conversation>& weak, mcp::Outgoing message) {
  const auto conversation = weak.lock();
  if (!conversation) return;
  const auto found = conversation->answers.find(message.request);
  if (found != conversation->answers.end()) {
    const auto stream = found->second;
    if (message.last) conversation->answers.erase(found);
    if (conversation->peer->session().opened().version.empty()) stream->leave_out_headers();
    return stream->send(message);
  }
  std::erase_if(conversation->listeners, [](const auto& stream) { return stream->closed(); });
  if (!message.last && !conversation->listeners.empty()) conversation->listeners.front()->send(message);
}

void McpHttp::listen_to(const std::shared_ptr<http::Exchange>& exchange) {
  if (!takes(exchange->request(), "text/event-stream"))
    return exchange->reply(plain_failure(406, "Accept: expected text/event-stream."));
  if (!exchange->request().header("Mcp-Session-Id")) {
    http::Answer answer = plain_failure(405, "GET needs a session (2025-11-25). Use POST.");
    answer.headers.push_back({"Allow", "POST"});
    return exchange->reply(std::move(answer));
  }
  const ConversationPtr conversation = find(exchange);
  if (!conversation) return;
  if (conversation->listeners.size() >= limits::mcp_listeners_per_session_max)
    return exchange->reply(
        plain_failure(409, "the session has its maximum of listening streams. Close one and retry."));
  const auto stream =
      std::make_shared<HttpStream>(exchange, std::vector<http::Header>{{"Mcp-Session-Id", conversation->id}}, false);
  stream->on_closed = [weak = std::weak_ptr(conversation), key = stream.get()] {
    const auto alive = weak.lock();
    if (alive) std::erase_if(alive->listeners, [&](const auto& one) { return one.get() == key; });
  };
  conversation->listeners.push_back(stream);
  stream->begin();
}

void McpHttp::end_conversation(const std::shared_ptr<http::Exchange>& exchange) {
  const ConversationPtr conversation = find(exchange);
  if (!conversation) return;
  end(conversation, "the session was ended, and the outcome is unknown.");
  exchange->reply(204, {}, "");
}

// Answers all calls in progress before the session ends.
void McpHttp::end(ConversationPtr conversation, std::string_view why) {
  conversations_.erase(conversation->id);
  for (const auto& [id, stream] : std::exchange(conversation->answers, {})) stream->send(unanswered(id, why));
  for (const auto& stream : std::exchange(conversation->listeners, {})) stream->end();
  conversation->peer->close();
}

void McpHttp::keep_alive() {
  const Monotonic now = host_.server().clock().monotonic();
  std::vector<ConversationPtr> unused;
  for (const auto& [id, conversation] : conversations_) {
    for (const auto& stream : std::vector(conversation->listeners)) stream->keep_alive();
    if (!conversation->in_use() && conversation->used + unused_max < now) unused.push_back(conversation);
  }
  for (const ConversationPtr& conversation : unused) end(conversation, {});
  for (const auto& [key, request] : std::map(stateless_)) request.stream->keep_alive();
}

}  // namespace muniment::daemon
