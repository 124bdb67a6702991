#include "adapters/mcp/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "adapters/mcp/proxy_limits.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::chrono::seconds probe_pause{1};
constexpr std::size_t label_bytes_max = 256;
constexpr std::uint64_t doubted_lines_said_max = 10;
constexpr std::uint64_t own_tokens = std::uint64_t{1} << 62;

std::string now_text() { return format_time(Clock().now()); }

void say(std::string_view text) { fmt::print(stderr, "muniment mcp: {}\n", escape_for_terminal(text)); }

}  // namespace

Recorder::Recorder(Session& session, RecorderOptions options)
    : session_(session), options_(std::move(options)), link_(session, proxy::record_patience), queue_(link_) {
  own_run_ = options_.run_id.empty();
  if (own_run_) options_.run_id = "mcp-" + make_uuid_v7(Clock().now()).text();
  if (!own_run_) run_ = RunState::open;
  link_.want();
}

void Recorder::begin(std::string_view client_name, std::string_view client_version) {
  if (std::exchange(began_, true)) return;
  if (options_.agent.empty()) options_.agent = client_name.empty() ? "mcp-host" : preview(client_name, label_bytes_max);
  client_version_ = preview(client_version, label_bytes_max);
  ensure_run();
}

void Recorder::ensure_run() {
  if (run_ != RunState::none) return;
  run_ = RunState::starting;
  json::Writer params;
  params.begin_object().member("run_id", options_.run_id).key("agent").begin_object();
  params.member("name", options_.agent);
  if (!client_version_.empty()) params.member("version", client_version_);
  params.end_object().member("goal", options_.goal).raw_member("labels", options_.labels);
  params.member("client", "muniment mcp " MUNIMENT_VERSION).member("cwd", options_.folder);
  params.key("_meta").begin_object().member("idempotency_key", "start of " + options_.run_id);
  params.end_object().end_object();
  run_token_ = own_token();
  queue_.add({"run.start", std::move(params).text(), {}, options_.run_id, run_token_});
}

void Recorder::identify_server(std::string_view name, std::string_view version, std::string_view protocol) {
  if (name.empty() || std::exchange(knows_server_, true)) return;
  if (!own_run_) {
    submit_note(fmt::format("MCP server {} is {} {}, protocol {}", options_.rules.server, name, version, protocol));
    return;
  }
  json::Writer params;
  params.begin_object().member("run_id", options_.run_id).key("labels").begin_object();
  params.member("mcp_server_name", preview(name, label_bytes_max));
  params.member("mcp_server_version", preview(version, label_bytes_max));
  if (!protocol.empty()) params.member("mcp_protocol", preview(protocol, label_bytes_max));
  params.end_object().key("_meta").begin_object().member("idempotency_key", "server of " + options_.run_id);
  params.end_object().end_object();
  queue_.add({"run.annotate", std::move(params).text(), {}, options_.run_id, own_token()});
}

void Recorder::record_call(const ToolCall& call, std::string_view params, std::uint64_t token) {
  begin("", "");  // for a host that never sent its name
  record_event(draft_called(options_.rules, call, params), token);
}

void Recorder::record_return(DraftEvent event, std::uint64_t token) { record_event(std::move(event), token); }

// Does not wait while the daemon is unavailable.
void Recorder::record_event(DraftEvent event, std::uint64_t token) {
  link_.want();
  if (outage_ && !link_.connected()) return lost(event, token, link_.problem());
  ensure_run();
  submit_event(std::move(event), token);
}

void Recorder::submit_event(DraftEvent event, std::uint64_t token) {
  const std::string body = event.body();
  json::Writer params;
  params.begin_object().member("run_id", options_.run_id).member("type", event.type);
  params.member("event_id", make_uuid_v7(Clock().now()).text()).member("occurred_at", now_text());
  params.raw_member("body", body);
  if (body.size() > limits::spill_part_bytes_max) params.member("spill", true);
  params.end_object();
  const bool may_wait = !options_.required && event.type == "tool.called";
  RecordRequest request{"event.append", std::move(params).text(), std::move(event.artifacts), options_.run_id, token,
                        may_wait};
  event.artifacts.clear();
  pending_.push_back({token, std::move(event), false});
  queue_.add(std::move(request));
}

std::uint64_t Recorder::submit_note(const std::string& text) {
  json::Writer params;
  params.begin_object().member("run_id", options_.run_id).member("note", text).key("_meta").begin_object();
  params.member("idempotency_key", "note " + make_uuid_v7(Clock().now()).text()).end_object().end_object();
  const std::uint64_t token = own_token();
  queue_.add({"run.annotate", std::move(params).text(), {}, options_.run_id, token});
  return token;
}

void Recorder::note_line(bool from_host, std::string_view doubt) {
  const std::string_view whose = from_host ? "host" : "server";
  DoubtedLines& lines = doubted_[whose];
  if (++lines.count == 1) lines.why = doubt;
  if (lines.count > doubted_lines_said_max) return;
  say(fmt::format("a line of the {} {}: {}", whose, options_.required ? "is withheld" : "passes unrecorded", doubt));
}

// Annotates the run with the first such line of each side, and with the total at the end.
void Recorder::note_lines(bool all) {
  if (run_ == RunState::none) return;
  for (auto& [whose, lines] : doubted_) {
    const bool first = !std::exchange(lines.noted, true);
    if (!first && !(all && lines.count > 1)) continue;
    const std::string_view fate = options_.required ? "withheld" : "passed unrecorded";
    const std::string of = fmt::format("of the {} of MCP server {}", whose, options_.rules.server);
    submit_note(first
                    ? fmt::format("a line {} {}{}: {}", of, options_.required ? "was " : "", fate, lines.why)
                    : fmt::format("{} lines {} {}{} in all", lines.count, of, options_.required ? "were " : "", fate));
  }
}

void Recorder::end(std::string_view outcome, std::string_view why) {
  if (outage_ && !link_.connected()) return;
  if (run_ == RunState::none && lost_calls_ == 0) return;
  ensure_run();
  if (outage_) {
    say(gap());
    note_gap();
  }
  note_lines(true);
  if (!own_run_) return;
  json::Writer params;
  params.begin_object().member("run_id", options_.run_id).member("outcome", outcome);
  if (!why.empty()) params.key("error").begin_object().member("message", why).end_object();
  params.key("_meta").begin_object().member("idempotency_key", "end of " + options_.run_id).end_object().end_object();
  end_token_ = own_token();
  queue_.add({"run.end", std::move(params).text(), {}, options_.run_id, end_token_});
}

void Recorder::step() {
  note_lines(false);
  bool more = true;
  while (more) {  // completed requests may produce further requests
    queue_.step();
    more = false;
    for (; auto completed = queue_.next_completed(); more = true) take_completed(*completed);
  }
  const auto now = std::chrono::steady_clock::now();
  if (outage_ && link_.state() == DaemonLink::State::unreachable && now >= next_probe_) {
    next_probe_ = now + probe_pause;
    link_.probe();
  }
}

std::optional<Recorded> Recorder::next_completed() {
  if (completed_.empty()) return std::nullopt;
  Recorded first = std::move(completed_.front());
  completed_.pop_front();
  return first;
}

void Recorder::take_completed(CompletedRequest& completed) {
  if (completed.late) return take_late(completed);
  const std::uint64_t token = completed.request.token;
  const std::string why = completed.outcome ? "" : session_.advised(completed.outcome.error().message);
  if (token >= own_tokens) {
    if (token == gap_token_ && completed.outcome) noted_calls_ = noted_returns_ = 0;
    if (token == run_token_) run_ = completed.outcome ? RunState::open : RunState::none;
    if (!completed.outcome && !outage_) say(fmt::format("{} is not recorded: {}", completed.request.method, why));
    if (!completed.outcome && lost_why_.empty()) lost_why_ = why;
    return;
  }
  if (!completed.outcome && retry_reduced(completed)) return;
  const auto found =
      std::find_if(pending_.begin(), pending_.end(), [token](const Pending& one) { return one.token == token; });
  if (found == pending_.end()) return;
  const DraftEvent event = std::move(found->event);
  pending_.erase(found);
  if (completed.in_doubt) in_doubt_[token] = event.type == "tool.called";
  if (!completed.outcome) return lost(event, token, why);
  completed_.push_back({token, "", false});
  recovered();
}

void Recorder::take_late(const CompletedRequest& completed) {
  const auto found = in_doubt_.extract(completed.request.token);
  if (!found) return;
  if (completed.outcome) --(found.mapped() ? lost_calls_ : lost_returns_);
  if (completed.in_doubt) ++undecided_;
  completed_.push_back({found.key(), completed.outcome ? "" : completed.outcome.error().message, true});
  if (completed.outcome) recovered();
}

// Returns true if the log refused the body itself and the event is sent again without it.
bool Recorder::retry_reduced(CompletedRequest& completed) {
  const Errc code = completed.outcome.error().code;
  if (code != Errc::invalid_argument && code != Errc::too_large) return false;
  const std::uint64_t token = completed.request.token;
  const auto found =
      std::find_if(pending_.begin(), pending_.end(), [token](const Pending& one) { return one.token == token; });
  if (found == pending_.end() || found->reduced) return false;
  const auto params = json::parse(std::string_view(completed.request.params));
  std::string body = params ? std::string(params->root()["body"].source()) : found->event.body();
  DraftEvent smaller = reduced(found->event, std::move(body), completed.outcome.error().message);
  pending_.erase(found);
  submit_event(std::move(smaller), token);
  pending_.back().reduced = true;
  return true;
}

void Recorder::lost(const DraftEvent& event, std::uint64_t token, const std::string& why) {
  if (!std::exchange(outage_, true)) {
    lost_since_ = now_text();
    if (lost_why_.empty()) lost_why_ = why;
    say(fmt::format("tool calls are not recorded: {}", lost_why_));
  }
  ++(event.type == "tool.called" ? lost_calls_ : lost_returns_);
  completed_.push_back({token, why.empty() ? "the daemon is unavailable" : why, false});
}

// Replies arrive in the order of requests, so unknown outcomes are resolved first.
void Recorder::recovered() {
  if (!outage_ || !in_doubt_.empty()) return;
  say("recording again. " + gap());
  note_gap();
}

std::string Recorder::gap() const {
  const std::string_view calls = lost_calls_ == 1 ? "call" : "calls";
  const std::string_view results = lost_returns_ == 1 ? "result" : "results";
  std::string text =
      options_.required
          ? fmt::format("{} {} of MCP server {} were refused and not made, and {} {} were withheld, from {} to {}: {}",
                        lost_calls_, calls, options_.rules.server, lost_returns_, results, lost_since_, now_text(),
                        lost_why_)
          : fmt::format("{} {} and {} {} of MCP server {} were not recorded from {} to {}: {}", lost_calls_, calls,
                        lost_returns_, results, options_.rules.server, lost_since_, now_text(), lost_why_);
  if (undecided_ > 0) text += fmt::format(". {} of their events may still be recorded", undecided_);
  return text;
}

void Recorder::note_gap() {
  if (lost_calls_ + lost_returns_ > 0) {
    gap_token_ = submit_note(gap());
    noted_calls_ += lost_calls_;
    noted_returns_ += lost_returns_;
  }
  outage_ = false;
  lost_calls_ = lost_returns_ = undecided_ = 0;
  lost_why_.clear();
}

std::string Recorder::unrecorded() const {
  std::uint64_t calls = noted_calls_ + (outage_ ? lost_calls_ : 0);
  std::uint64_t results = noted_returns_ + (outage_ ? lost_returns_ : 0);
  for (const Pending& one : pending_) ++(one.event.type == "tool.called" ? calls : results);
  if (calls + results == 0) return {};
  return fmt::format("the session ends with {} of its calls and {} of its results unrecorded", calls, results);
}

int Recorder::wait(std::vector<pollfd>& polled) const {
  std::vector<int> waits = {link_.wait(polled, true), queue_.wait_ms()};
  if (!completed_.empty()) waits.push_back(0);
  if (outage_ && link_.state() == DaemonLink::State::unreachable) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_probe_ - std::chrono::steady_clock::now());
    waits.push_back(static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  }
  int least = -1;
  for (const int one : waits) {
    if (one >= 0 && (least < 0 || one < least)) least = one;
  }
  return least;
}

}  // namespace muniment::cli
