#include "adapters/mcp/stdio_proxy.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "adapters/mcp/proxy_limits.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t cut_end_bytes = 4096;

}  // namespace

std::string session_line(const McpSession& about, bool resume) {
  json::Writer out;
  out.begin_object().member("jsonrpc", "2.0").member("method", "muniment/session").key("params").begin_object();
  out.member("transport", "stdio").member("record", about.record).member("run_id", about.run_id);
  if (!about.agent.empty()) out.member("agent", about.agent);
  out.member("cwd", about.folder).raw_member("labels", about.labels).member("toolsets", about.toolsets);
  if (!about.files.empty()) out.member("files", about.files);
  if (about.review) out.member("review", true);
  if (resume) out.member("resume", true);
  out.end_object().end_object();
  return std::move(out).text() + "\n";
}

StdioProxy::StdioProxy(Session& session, McpSession about)
    : session_(session),
      about_(std::move(about)),
      link_(session, proxy::reconnect_patience),
      in_(STDIN_FILENO, limits::request_line_bytes_max + 1),
      out_(STDOUT_FILENO) {}

void StdioProxy::run() {
  StopSignals signals;
  const auto pipe_before = ::signal(SIGPIPE, SIG_IGN);
  link_.want();  // starts a daemon before the first message of the host
  do {
    take_host_lines();
    link_.step();
    follow_connection();
    take_daemon_lines();
    if (link_.state() == DaemonLink::State::unreachable) refuse_waiting();
    send_waiting();
    link_.flush();
    out_.flush();
  } while (!finished() && poll_once(signals));
  ::signal(SIGPIPE, pipe_before);
}

// Returns false if a signal requests the end.
bool StdioProxy::poll_once(StopSignals& signals) {
  std::vector<pollfd> polled{{signals.fd(), POLLIN, 0}};
  polled.push_back({out_.descriptor(), static_cast<short>(out_.waiting() > 0 ? POLLOUT : 0), 0});
  const bool reading_host = !in_.ended() && waiting_bytes_ < proxy::waiting_bytes_max;
  if (reading_host) polled.push_back({in_.descriptor(), POLLIN, 0});
  int wait_ms = link_.wait(polled, out_.waiting() < proxy::waiting_bytes_max);
  if (in_.ended()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(drain_until_ - std::chrono::steady_clock::now());
    const int left_ms = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    wait_ms = wait_ms < 0 ? left_ms : std::min(wait_ms, left_ms);
  }
  if (::poll(polled.data(), polled.size(), more_to_do() ? 0 : wait_ms) <= 0) return true;
  if (polled[0].revents != 0) return !signals.take();
  host_gone_ = (polled[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
  if (reading_host && polled[2].revents != 0) in_.fill();
  return true;
}

// A stream that was paused because of too much queued data resumes without a poll event.
bool StdioProxy::more_to_do() const {
  return (host_lines_left_ && waiting_bytes_ < proxy::waiting_bytes_max) ||
         (daemon_lines_left_ && out_.waiting() < proxy::waiting_bytes_max) ||
         (ready_ && !waiting_.empty() && link_.unsent() < proxy::waiting_bytes_max);
}

bool StdioProxy::finished() {
  if (out_.broken() || host_gone_) return true;
  if (!in_.ended()) return false;
  const auto now = std::chrono::steady_clock::now();
  const bool on_its_way = link_.state() == DaemonLink::State::connecting || (link_.connected() && !ready_);
  if (drain_until_ == Time{} || (on_its_way && !waiting_.empty())) drain_until_ = now + proxy::end_patience;
  // A subscription ends with the host's session, not before.
  const bool awaits = std::any_of(in_flight_.begin(), in_flight_.end(),
                                  [](const auto& one) { return one.second.method != "subscriptions/listen"; });
  const bool done = !host_lines_left_ && waiting_.empty() && !awaits && link_.unsent() == 0 && out_.waiting() == 0;
  return done || now >= drain_until_;
}

void StdioProxy::follow_connection() {
  if (connection_ != 0 && (!link_.connected() || link_.connection() != connection_)) end_connection();
  if (connection_ == 0 && link_.connected()) begin_connection();
}

void StdioProxy::begin_connection() {
  connection_ = link_.connection();
  link_.send(session_line(about_, called_));
  ready_ = initialize_.empty();
  if (ready_) return;
  // Sends the same request with an internal id, so that no reply reaches the host.
  replay_id_ = own_id("init");
  json::Writer out;
  out.begin_object();
  json::each_member(initialize_, [&](std::string_view key, std::string_view value) {
    const std::string name = json::string_of(key).value_or("");
    if (name != "id") out.raw_member(name, value);
  });
  out.raw_member("id", replay_id_).end_object();
  link_.send(out.text() + "\n");
}

// Contains the run id, which the host does not know.
std::string StdioProxy::own_id(std::string_view purpose) {
  std::string id = fmt::format("\"muniment-re{}-{}-{}\"", purpose, ++own_requests_, about_.run_id);
  own_ids_.insert(id);
  return id;
}

void StdioProxy::end_connection() {
  connection_ = 0;
  ready_ = false;
  reconnected_ = true;
  asked_by_daemon_.clear();
  own_ids_.clear();
  const std::string cause =
      link_.refused() ? fmt::format("Muniment's daemon refuses the connection: {}", link_.problem()) : std::string();
  for (const auto& [key, request] : std::exchange(in_flight_, {})) {
    if (request.method == "initialize" && !initializing_.empty()) {
      waiting_bytes_ += initializing_.size();
      waiting_.push_front(std::exchange(initializing_, {}));
      continue;
    }
    answer_error(request.id, proxy::internal_error,
                 !cause.empty() ? cause
                                : fmt::format("Muniment's daemon was restarted while {} was in flight. The outcome is "
                                              "unknown if the call writes. Retry",
                                              request.method));
  }
  if (link_.state() != DaemonLink::State::unreachable)
    fmt::print(stderr, "muniment mcp: {}; reconnecting\n", escape_for_terminal(link_.problem()));
}

void StdioProxy::take_daemon_lines() {
  daemon_lines_left_ = true;
  while (out_.waiting() < proxy::waiting_bytes_max) {
    const auto line = link_.next_line();
    daemon_lines_left_ = line.has_value();
    if (!line) break;
    bool swallow = false;
    for (const std::string_view message : json::messages_of(*line)) take_daemon_message(message, swallow);
    if (swallow) continue;
    out_.add(*line);
    out_.add("\n");
  }
  follow_connection();
}

void StdioProxy::take_daemon_message(std::string_view message, bool& swallow) {
  const json::Envelope envelope = json::skim_message(message);
  const std::string key = json::id_key(envelope.id);
  if (envelope.is_request()) {
    asked_by_daemon_.insert(key);
  } else if (own_ids_.erase(key) > 0) {
    swallow = true;
    if (!envelope.error.empty())
      fmt::print(stderr, "muniment mcp: {} was refused: {}\n", key, escape_for_terminal(envelope.error));
    if (key == replay_id_) resumed();
  } else if (const auto found = in_flight_.find(key); found != in_flight_.end() && envelope.is_response()) {
    take_answer(found->second, envelope);
    in_flight_.erase(found);
  }
}

void StdioProxy::take_answer(const InFlight& asked, const json::Envelope& answer) {
  if (asked.method == "initialize") {
    if (!answer.result.empty()) initialize_ = std::exchange(initializing_, {});
    initializing_.clear();
  }
  if (asked.params.empty() || answer.result.empty()) return;
  const std::string uri = json::string_of(json::member_of(asked.params, "uri")).value_or("");
  if (asked.method == "resources/subscribe") {
    subscriptions_[uri] = asked.params;
  } else {
    subscriptions_.erase(uri);
  }
}

// The new connection has the session of the host; sends the remaining setup and then the queued lines.
void StdioProxy::resumed() {
  replay_id_.clear();
  ready_ = true;
  if (!initialized_.empty()) link_.send(initialized_);
  for (const auto& [uri, params] : subscriptions_) {
    link_.send(fmt::format("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"resources/subscribe\",\"params\":{}}}\n",
                           own_id("subscribe"), params));
  }
}

void StdioProxy::take_host_lines() {
  host_lines_left_ = true;
  while (waiting_bytes_ < proxy::waiting_bytes_max) {
    auto piece = in_.next();
    host_lines_left_ = piece.has_value();
    if (!piece) return;
    if (!piece->whole()) {
      take_cut_line(*piece);
      continue;
    }
    if (!piece->bytes.ends_with('\n')) piece->bytes += '\n';
    waiting_bytes_ += piece->bytes.size();
    waiting_.push_back(std::move(piece->bytes));
    if (!link_.connected()) link_.want();
  }
}

void StdioProxy::take_cut_line(const LinePiece& piece) {
  if (piece.begins) {
    cut_beginning_ = piece.bytes;
    cut_bytes_ = 0;
  }
  cut_bytes_ += piece.bytes.size();
  cut_end_ += piece.bytes;
  if (cut_end_.size() > cut_end_bytes) cut_end_.erase(0, cut_end_.size() - cut_end_bytes);
  if (!piece.ends) return;
  answer_error(json::id_of_cut_message(cut_beginning_, cut_end_), proxy::invalid_request,
               fmt::format("the message is {} bytes, limit {}. Send smaller messages", grouped(cut_bytes_),
                           grouped(limits::request_line_bytes_max)));
  cut_beginning_.clear();
  cut_end_.clear();
}

void StdioProxy::send_waiting() {
  while (ready_ && !waiting_.empty() && link_.unsent() < proxy::waiting_bytes_max) {
    const std::string line = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= line.size();
    bool known = true;
    for (const std::string_view message : json::messages_of(line)) known = note_sent(message) && known;
    if (known) link_.send(line);
  }
}

// Returns false if the message must not be sent.
bool StdioProxy::note_sent(std::string_view message) {
  const json::Envelope envelope = json::skim_message(message);
  if (envelope.is_request()) {
    note_request(envelope, message);
  } else if (envelope.is_response()) {
    // An answer to a request of the previous daemon must not reach the new one.
    return asked_by_daemon_.erase(json::id_key(envelope.id)) > 0 || !reconnected_;
  } else if (envelope.method == "notifications/initialized") {
    initialized_ = std::string(message);
    if (!initialized_.ends_with('\n')) initialized_ += '\n';
  } else if (envelope.method == "notifications/cancelled") {
    in_flight_.erase(json::id_key(json::member_of(envelope.params, "requestId")));
  }
  return true;
}

void StdioProxy::note_request(const json::Envelope& request, std::string_view message) {
  if (request.method == "tools/call") called_ = true;
  if (request.method == "initialize") initializing_ = std::string(message);
  // The daemon answers any other id with an error without an id.
  if (request.id.front() != '"' && request.id.find_first_not_of("+-.eE0123456789") != std::string_view::npos) return;
  const bool subscribes = request.method == "resources/subscribe" || request.method == "resources/unsubscribe";
  in_flight_[json::id_key(request.id)] = {std::string(request.id), request.method,
                                          subscribes ? std::string(request.params) : std::string()};
}

// Called while the daemon is unreachable: answers every queued request with an error. The next request tries again.
void StdioProxy::refuse_waiting() {
  if (waiting_.empty()) return;
  const std::string why = session_.advised(fmt::format(
      "Muniment's daemon is unreachable: {}. Find the cause with: muniment doctor. The next request tries again",
      link_.problem()));
  fmt::print(stderr, "muniment mcp: {}\n", escape_for_terminal(why));
  for (const std::string& line : std::exchange(waiting_, {})) {
    for (const std::string_view message : json::messages_of(line)) {
      const json::Envelope envelope = json::skim_message(message);
      if (envelope.is_request()) answer_error(envelope.id, proxy::internal_error, why);
      if (envelope.method == "notifications/initialized") initialized_ = line;
    }
  }
  waiting_bytes_ = 0;
}

void StdioProxy::answer_error(std::string_view id, int code, std::string_view message) {
  json::Writer out;
  out.begin_object().member("jsonrpc", "2.0");
  if (!id.empty()) out.raw_member("id", id);
  out.key("error").begin_object().member("code", code).member("message", message).end_object().end_object();
  out_.add(out.text());
  out_.add("\n");
}

}  // namespace muniment::cli
