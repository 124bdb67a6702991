#include "adapters/mcp/recording_proxy.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "adapters/mcp/message_check.hpp"
#include "adapters/mcp/proxy_limits.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t cut_bytes_kept = 64 * 1024;
constexpr std::chrono::milliseconds output_patience{
    200};  // processes left behind by the server may keep its output open
constexpr std::string_view client_info = "io.modelcontextprotocol/clientInfo";
constexpr std::string_view server_info = "io.modelcontextprotocol/serverInfo";
constexpr std::string_view protocol_version = "io.modelcontextprotocol/protocolVersion";

std::string said(std::string_view object, std::string_view key) {
  return json::string_of(json::member_of(object, key)).value_or("");
}

std::string error_line(std::string_view id, int code, std::string_view message) {
  json::Writer out;
  out.begin_object().member("jsonrpc", "2.0").raw_member("id", id).key("error").begin_object();
  out.member("code", code).member("message", message).end_object().end_object();
  return std::move(out).text() + "\n";
}

std::int64_t microseconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

void RecordingProxy::CutLine::add(const LinePiece& piece) {
  if (piece.begins) {
    beginning = piece.bytes.substr(0, cut_bytes_kept);
    end.clear();
  }
  end += piece.bytes.substr(piece.bytes.size() - std::min(piece.bytes.size(), cut_bytes_kept));
  if (end.size() > cut_bytes_kept) end.erase(0, end.size() - cut_bytes_kept);
}

RecordingProxy::RecordingProxy(ChildServer server, Recorder& recorder, bool required)
    : server_(std::move(server)),
      recorder_(recorder),
      required_(required),
      host_in_(STDIN_FILENO, proxy::message_bytes_max),
      host_out_(STDOUT_FILENO),
      server_out_(server_.output(), proxy::message_bytes_max),
      server_in_(server_.input()) {}

int RecordingProxy::run() {
  const auto pipe_before = ::signal(SIGPIPE, SIG_IGN);
  for (;;) {
    take_lines(host_in_, Direction::to_server);
    take_lines(server_out_, Direction::to_host);
    pass_on();  // passes on lines that are not held
    recorder_.step();
    complete();
    pass_on();
    follow_end();
    const bool silent = server_out_.ended() || std::chrono::steady_clock::now() - exit_at_ >= output_patience;
    if (exit_ && silent && (!lines_left_[1] || host_ended_)) break;
    poll_once();
  }
  const int exit_code = finish();
  ::signal(SIGPIPE, pipe_before);
  return exit_code;
}

void RecordingProxy::take_lines(LineReader& reader, Direction direction) {
  bool& left = lines_left_[static_cast<int>(direction)];
  left = true;
  while (!full(direction)) {
    auto piece = reader.next();
    left = piece.has_value();
    if (!piece) return;
    if (!piece->whole()) {
      take_cut_line(*piece, direction);
      continue;
    }
    take_line(std::move(piece->bytes), direction);
  }
}

void RecordingProxy::take_line(std::string bytes, Direction direction) {
  std::string doubt = doubt_about(bytes);
  if (doubt.empty()) doubt = doubt_about_ids(bytes, direction);
  if (!doubt.empty()) recorder_.note_line(direction == Direction::to_server, doubt);
  if (!doubt.empty() && required_) return withhold(bytes, direction, doubt);
  LineFacts line;
  for (const std::string_view message : json::messages_of(bytes)) {
    direction == Direction::to_server ? take_host_message(message, line) : take_server_message(message, line);
  }
  hold(direction, std::move(bytes), std::move(line));
}

// Results are matched to calls by id, so an id may belong to only one request in flight.
std::string RecordingProxy::doubt_about_ids(std::string_view line, Direction direction) const {
  const bool from_host = direction == Direction::to_server;
  std::set<std::string> seen;
  for (const std::string_view message : json::messages_of(line)) {
    const json::Envelope envelope = json::skim_message(message);
    if (!(from_host ? envelope.is_request() : envelope.is_response())) continue;
    const std::string key = json::id_key(envelope.id);
    if (seen.insert(key).second && in_flight(key) != from_host) continue;
    return from_host ? fmt::format("its id {} belongs to a request in flight", envelope.id)
                     : fmt::format("it answers {}, which is not a request in flight", envelope.id);
  }
  return {};
}

// Answers each request of the line with an error.
void RecordingProxy::withhold(std::string_view line, Direction direction, std::string_view doubt) {
  const std::string why = fmt::format("the message cannot be recorded and was not passed on: {}", doubt);
  for (std::size_t at = json::skip_blanks(line, 0); at < line.size();) {
    const std::size_t end = std::max(json::skip_value(line, at), at + 1);
    for (const std::string_view message : json::messages_of(line.substr(at, end - at))) {
      const json::Envelope envelope = json::skim_message(message);
      if (!is_request_id(envelope.id)) continue;
      if (direction == Direction::to_host) {
        withhold_response(envelope, why);
      } else if (envelope.is_request()) {
        to_host_.add(error_line(envelope.id, proxy::invalid_request, why), 0);
      }
    }
    at = json::skip_blanks(line, end);
  }
}

void RecordingProxy::withhold_response(const json::Envelope& envelope, std::string_view why) {
  const std::string key = json::id_key(envelope.id);
  if (!envelope.is_response() || !in_flight(key)) return;
  if (const auto found = open_.find(key); found != open_.end()) {
    record_unanswered(found->second, "unknown", why);
    open_.erase(found);
  }
  asked_.erase(key);
  to_host_.add(error_line(envelope.id, proxy::internal_error, why), 0);
}

void RecordingProxy::take_host_message(std::string_view message, LineFacts& line) {
  const json::Envelope envelope = json::skim_message(message);
  if (envelope.is_request()) {
    line.ids.emplace_back(envelope.id);
    begin(envelope);
    if (envelope.method == "tools/call") return take_call(envelope, envelope.params, line);
    asked_.insert(json::id_key(envelope.id));
  } else if (envelope.method == "notifications/cancelled") {
    cancel(envelope);
  }
}

void RecordingProxy::take_call(const json::Envelope& envelope, std::string_view params, LineFacts& line) {
  line.tokens.push_back(++tokens_);
  OpenCall open{
      {make_uuid_v7(Clock().now()).text(), std::string(envelope.id)}, std::chrono::steady_clock::now(), tokens_};
  recorder_.record_call(open.call, params, tokens_);
  const std::string key = json::id_key(envelope.id);
  if (!in_flight(key)) {
    open_.emplace(key, std::move(open));
    return;
  }
  constexpr std::string_view why =
      "the host used the id for two concurrent requests: their results cannot be distinguished";
  if (const auto other = open_.find(key); other != open_.end()) {
    record_unanswered(other->second, "unknown", why);
    open_.erase(other);
  }
  record_unanswered(open, "unknown", why);
}

// The first message that names the host begins the run: initialize, or since 2026 any request.
void RecordingProxy::begin(const json::Envelope& envelope) {
  const bool initialize = envelope.method == "initialize";
  const std::string_view meta = json::member_of(envelope.params, "_meta");
  if (!recorder_.knows_server() && handshakes_.size() < 16)
    handshakes_[json::id_key(envelope.id)] = initialize ? "" : said(meta, protocol_version);
  if (began_) return;
  const std::string_view client =
      initialize ? json::member_of(envelope.params, "clientInfo") : json::member_of(meta, client_info);
  if (!initialize && client.empty()) return;
  began_ = true;
  recorder_.begin(said(client, "name"), said(client, "version"));
}

void RecordingProxy::cancel(const json::Envelope& envelope) {
  const auto found = open_.find(json::id_key(json::member_of(envelope.params, "requestId")));
  if (found == open_.end()) return;
  const std::string reason = said(envelope.params, "reason");
  record_unanswered(found->second, "cancelled", "cancelled by the host" + (reason.empty() ? "" : ": " + reason));
  open_.erase(found);
}

void RecordingProxy::take_server_message(std::string_view message, LineFacts& line) {
  const json::Envelope envelope = json::skim_message(message);
  if (!envelope.is_response()) return;
  line.ids.emplace_back(envelope.id);
  identify(envelope);
  const auto found = open_.find(json::id_key(envelope.id));
  asked_.erase(json::id_key(envelope.id));
  if (found == open_.end()) return;
  const OpenCall open = std::move(found->second);
  open_.erase(found);
  if (open.lost && !required_) {
    record_unanswered(open, "unknown", "the call was answered, but its result is not recorded");
    return recorder_.lose_return();
  }
  line.tokens.push_back(++tokens_);
  recorder_.record_return(
      draft_returned(recorder_.rules(), open.call, envelope.result, envelope.error, microseconds_since(open.began)),
      tokens_);
}

void RecordingProxy::identify(const json::Envelope& envelope) {
  if (recorder_.knows_server()) return;
  const auto asked = handshakes_.find(json::id_key(envelope.id));
  if (asked == handshakes_.end()) return;
  const std::string_view direct = json::member_of(envelope.result, "serverInfo");
  const std::string_view info =
      direct.empty() ? json::member_of(json::member_of(envelope.result, "_meta"), server_info) : direct;
  const std::string version = said(envelope.result, "protocolVersion");
  recorder_.identify_server(said(info, "name"), said(info, "version"), version.empty() ? asked->second : version);
  handshakes_.erase(asked);
}

// A line over 64 MiB is passed on in pieces. Its kind is known only at its end; then the call or result is recorded
// without its content. With `required` such a line is not passed on.
void RecordingProxy::take_cut_line(const LinePiece& piece, Direction direction) {
  const bool from_host = direction == Direction::to_server;
  CutLine& cut = from_host ? cut_to_server_ : cut_to_host_;
  cut.add(piece);
  LineFacts line;
  if (piece.ends) {
    const std::string id = json::id_of_cut_message(cut.beginning, cut.end);
    const std::string_view text = cut.beginning;
    const bool is_call = text.find("\"tools/call\"") != std::string_view::npos;
    const auto found = open_.find(json::id_key(id));
    if (!id.empty()) line.ids.push_back(id);
    if (required_) {
      constexpr std::string_view doubt = "it is over 64 MiB";
      recorder_.note_line(from_host, doubt);
      // Passes a message with only the id and the kind implied by the direction.
      withhold(fmt::format(R"({{"id":{},"{}":""}})", id.empty() ? "null" : id, from_host ? "method" : "result"),
               direction, doubt);
    } else if (from_host && is_call && !id.empty()) {
      json::Envelope envelope;
      envelope.id = id;
      take_call(envelope, "{\"name\":\"(a message over 64 MiB, not recorded)\"}", line);
    } else if (!from_host && found != open_.end()) {
      line.tokens.push_back(++tokens_);
      const OpenCall open = std::move(found->second);
      open_.erase(found);
      recorder_.record_return(draft_unanswered(open.call, "unknown", "the reply is over 64 MiB and is not recorded",
                                               microseconds_since(open.began)),
                              tokens_);
    }
  }
  if (!required_) hold(direction, piece.bytes, std::move(line));
}

void RecordingProxy::hold(Direction direction, std::string bytes, LineFacts line) {
  const bool waits = direction == Direction::to_host || required_;
  const std::uint64_t number = gate(direction).add(std::move(bytes), waits ? line.tokens.size() : 0);
  if (!waits || line.tokens.empty()) return;
  for (const std::uint64_t token : line.tokens) holds_[token] = {direction, number};
  lines_[{direction, number}] = std::move(line);
}

void RecordingProxy::complete() {
  const std::uint64_t before = tokens_;
  while (const auto recorded = recorder_.next_completed()) complete_one(*recorded);
  if (tokens_ != before) recorder_.step();  // refusals are recorded too
}

void RecordingProxy::complete_one(const Recorded& recorded) {
  if (recorded.late) return complete_late(recorded);
  if (!recorded.problem.empty()) {
    for (auto& [key, open] : open_) open.lost = open.lost || open.token == recorded.token;
  }
  const auto found = holds_.find(recorded.token);
  if (found == holds_.end()) return;
  const Hold hold = found->second;
  holds_.erase(found);
  LineFacts& line = lines_[hold];
  if (!recorded.problem.empty()) line.problem = recorded.problem;
  gate(hold.direction).release(hold.line);
  if (gate(hold.direction).held(hold.line)) return;
  if (required_ && !line.problem.empty()) refuse(hold, line);
  lines_.erase(hold);
}

// Handles the late outcome of a lost tool.called.
void RecordingProxy::complete_late(const Recorded& recorded) {
  auto end = ends_of_lost_.extract(recorded.token);
  if (!recorded.problem.empty()) return;
  for (auto& [key, open] : open_) open.lost = open.lost && open.token != recorded.token;
  if (end) recorder_.record_return(std::move(end.mapped()), ++tokens_);
}

// With `required` the host receives an error instead of an unrecorded result.
void RecordingProxy::refuse(const Hold& hold, const LineFacts& line) {
  const bool unasked = hold.direction == Direction::to_server;
  const std::string why = fmt::format("{}: {}. See: muniment doctor",
                                      unasked ? "the call cannot be recorded, and was not made"
                                              : "the call was made, but its result cannot be recorded and is withheld",
                                      line.problem);
  std::string answers;
  for (const std::string& id : line.ids) {
    answers += error_line(id, proxy::internal_error, why);
    const auto found = open_.find(json::id_key(id));
    if (!unasked || found == open_.end()) continue;
    record_unanswered(found->second, "denied", why);
    open_.erase(found);
  }
  gate(hold.direction).replace(hold.line, unasked ? "" : answers);
  if (unasked) to_host_.add(std::move(answers), 0);
}

void RecordingProxy::record_unanswered(const OpenCall& open, std::string_view status, std::string_view why) {
  DraftEvent end = draft_unanswered(open.call, status, why, microseconds_since(open.began));
  if (!open.lost) {
    recorder_.record_return(std::move(end), ++tokens_);
  } else if (recorder_.in_doubt(open.token)) {
    ends_of_lost_[open.token] = std::move(end);
  }
}

void RecordingProxy::pass_on() {
  to_server_.pass_to(server_in_);
  server_in_.flush();
  to_host_.pass_to(host_out_);
  host_out_.flush();
}

bool RecordingProxy::full(Direction direction) const {
  return direction == Direction::to_server ? to_server_.bytes() + server_in_.waiting() >= proxy::waiting_bytes_max
                                           : to_host_.bytes() + host_out_.waiting() >= proxy::waiting_bytes_max;
}

// A stream that was paused because of too much queued data resumes without a poll event.
bool RecordingProxy::more_to_do() const {
  return (lines_left_[0] && !full(Direction::to_server)) || (lines_left_[1] && !full(Direction::to_host));
}

void RecordingProxy::poll_once() {
  std::vector<pollfd> polled{{signals_.fd(), POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
  if (!host_in_.ended() && !full(Direction::to_server)) polled[1].fd = host_in_.descriptor();
  if (!server_out_.ended() && !full(Direction::to_host)) polled[2].fd = server_out_.descriptor();
  const bool to_host = host_out_.waiting() > 0;
  polled.push_back({host_out_.broken() ? -1 : host_out_.descriptor(), static_cast<short>(to_host ? POLLOUT : 0), 0});
  if (server_in_.waiting() > 0) polled.push_back({server_in_.descriptor(), POLLOUT, 0});
  if (!exit_) polled.push_back({server_.process(), POLLIN, 0});
  int wait_ms = recorder_.wait(polled);
  const auto now = std::chrono::steady_clock::now();
  std::optional<Time> due;
  if (exit_) due = exit_at_ + output_patience;
  if (!exit_ && next_signal_ != 0) due = next_signal_at_;
  if (due) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - now);
    const int left_ms = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    wait_ms = wait_ms < 0 ? left_ms : std::min(wait_ms, left_ms);
  }
  if (::poll(polled.data(), polled.size(), more_to_do() ? 0 : wait_ms) <= 0) return;
  if (polled[0].revents != 0 && signals_.take()) {
    host_ended_ = true;
    stop_server(SIGTERM);
  }
  if (polled[1].revents != 0) host_in_.fill();
  if (polled[2].revents != 0) server_out_.fill();
  if ((polled[3].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) host_ended_ = true;
}

// Closes the server's input, then sends SIGTERM and SIGKILL at intervals of 5 s. If `first_signal` is set, sends it at
// once.
void RecordingProxy::stop_server(int first_signal) {
  server_.close_input();
  stopping_ = true;
  next_signal_ = SIGTERM;
  next_signal_at_ = std::chrono::steady_clock::now() + proxy::end_patience;
  if (first_signal == 0) return;
  server_.signal(first_signal);
  next_signal_ = SIGKILL;
}

void RecordingProxy::follow_end() {
  const bool all_sent = host_in_.ended() && !lines_left_[0] && to_server_.empty() && server_in_.waiting() == 0;
  if (all_sent || host_out_.broken()) host_ended_ = true;
  const auto now = std::chrono::steady_clock::now();
  if (!exit_) {
    exit_ = server_.ended();
    if (exit_) exit_at_ = now;
  }
  if (!stopping_ && (exit_ || server_out_.ended())) died_ = !host_ended_;
  if (!stopping_ && (host_ended_ || exit_ || server_out_.ended())) stop_server(0);
  if (exit_ || next_signal_ == 0 || !stopping_ || now < next_signal_at_) return;
  server_.signal(next_signal_);
  next_signal_ = next_signal_ == SIGTERM ? SIGKILL : 0;
  next_signal_at_ = now + proxy::end_patience;
}

int RecordingProxy::finish() {
  const std::string how = exit_->signal != 0 ? fmt::format("the server was killed by signal {}", exit_->signal)
                                             : fmt::format("the server ended with code {}", exit_->code);
  for (const auto& [key, open] : open_) record_unanswered(open, "interrupted", how + " before it answered");
  const bool failed = exit_->exit_code() != 0;
  const Time until = std::chrono::steady_clock::now() + proxy::end_patience;
  drain(until);
  recorder_.end(!died_ ? "success" : failed ? "failure" : "abandoned", died_ && failed ? how : "");
  drain(until);
  const std::string unrecorded = recorder_.unrecorded();
  if (unrecorded.empty()) return exit_->exit_code();
  fmt::print(stderr, "muniment mcp: {}\n", unrecorded);
  return required_ && !failed ? 1 : exit_->exit_code();
}

// Runs until everything is recorded and passed on, or until the time limit.
void RecordingProxy::drain(Time until) {
  for (;;) {
    take_lines(server_out_, Direction::to_host);
    recorder_.step();
    complete();
    pass_on();
    const bool done =
        !lines_left_[1] && recorder_.idle() && to_host_.empty() && (host_out_.waiting() == 0 || host_out_.broken());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (done || left.count() <= 0) return;
    std::vector<pollfd> polled{{host_out_.waiting() > 0 ? host_out_.descriptor() : -1, POLLOUT, 0}};
    const int wait_ms = recorder_.wait(polled);
    const int left_ms = static_cast<int>(left.count());
    ::poll(polled.data(), polled.size(), wait_ms < 0 ? left_ms : std::min(wait_ms, left_ms));
  }
}

}  // namespace muniment::cli
