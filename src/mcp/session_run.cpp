// Records the tool calls of a session as events of its run.
#include "mcp/session_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/utf8.hpp"

namespace muniment::mcp {
namespace {

constexpr std::size_t name_bytes_max = 256;

// Cuts the text without splitting a character.
std::string cut(std::string text) {
  if (text.size() <= name_bytes_max) return text;
  text.resize(name_bytes_max);
  text.resize(std::min(text.size(), first_invalid_utf8(text)));
  return text;
}

std::string agent_json(const json::Value& client_info, std::string_view agent) {
  json::Writer writer;
  std::string name = cut(agent.empty() ? client_info["name"].string_or("") : std::string(agent));
  if (name.empty()) name = "mcp";
  writer.begin_object().member("name", name);
  if (const std::string version = cut(client_info["version"].string_or("")); !version.empty())
    writer.member("version", version);
  return std::move(writer.end_object()).text();
}

}  // namespace

SessionRun::SessionRun(Clock& clock, Native& native, bool record, std::string run_id) : clock_(clock), native_(native) {
  Settings settings;
  settings.record = record;
  settings.run_id = std::move(run_id);
  configure(std::move(settings));
  state_->run_has_ended = [this] { follow_ended(); };
}

SessionRun::~SessionRun() {
  state_->waiting.clear();
  state_->run_has_ended = nullptr;
}

void SessionRun::configure(Settings settings) {
  if (open_) return;
  settings_ = std::move(settings);
  chosen_id_ = settings_.run_id;
}

void SessionRun::introduce(const json::Value& client_info) {
  if (client_.empty() || client_info) client_ = agent_json(client_info, settings_.agent);
  if (settings_.resume) open();
}

void SessionRun::open() {
  if (!settings_.record) return;
  if (open_) {
    if (std::exchange(state_->not_started, false)) start();
    return;
  }
  if (client_.empty()) client_ = agent_json({}, settings_.agent);
  if (chosen_id_.empty()) settings_.run_id = "mcp-" + make_uuid_v7(clock_.now()).text();
  open_ = true;
  start();
}

void SessionRun::start() {
  json::Writer params;
  params.begin_object().member("run_id", settings_.run_id).raw_member("agent", client_);
  params.member("client", "mcp");
  if (!settings_.cwd.empty()) params.member("cwd", settings_.cwd);
  if (!settings_.labels.empty()) params.raw_member("labels", settings_.labels);
  send("run.start", std::move(params.end_object()).text());
}

// An ended run is not started again, because the session's next run may be open already.
void SessionRun::follow_ended() {
  was_ended();
  open();
}

void SessionRun::when_started(std::function<void()> then) {
  if (!state_->starting) return then();
  state_->waiting.push_back(std::move(then));
}

std::string SessionRun::called(std::string_view tool, std::string_view arguments) {
  open();
  std::string call_id = fmt::format("mcp-{}", ++calls_);
  if (!open_) return call_id;
  append("tool.called", json::Writer()
                            .begin_object()
                            .member("call_id", call_id)
                            .member("name", tool)
                            .member("kind", "mcp")
                            .member("server", "muniment")
                            .raw_member("arguments", arguments)
                            .end_object()
                            .text());
  return call_id;
}

void SessionRun::returned(std::string_view call_id, std::string_view status, std::string_view text,
                          std::optional<std::int64_t> duration_us) {
  if (!open_) return;
  json::Writer body;
  body.begin_object().member("call_id", call_id).member("status", status);
  body.key("content").begin_array();
  body.begin_object().member("type", "text").member("content", text).end_object();
  body.end_array();
  if (duration_us) body.member("duration_us", *duration_us);
  append("tool.returned", std::move(body.end_object()).text());
}

void SessionRun::was_ended() {
  open_ = false;
  if (!chosen_id_.empty()) settings_.run_id = fmt::format("{}-{}", chosen_id_, ++parts_);
}

// At the end of a session it is unknown whether the goal was reached.
void SessionRun::end() {
  if (!std::exchange(open_, false)) return;
  when_started([this] {
    send("run.end", json::Writer()
                        .begin_object()
                        .member("run_id", settings_.run_id)
                        .member("outcome", "unknown")
                        .end_object()
                        .text());
  });
}

// Appends once the run's id is known.
void SessionRun::append(std::string_view type, std::string body) {
  when_started([this, type, body = std::move(body)] {
    send("event.append", json::Writer()
                             .begin_object()
                             .member("run_id", settings_.run_id)
                             .member("type", type)
                             .raw_member("body", body)
                             .member("spill", true)
                             .end_object()
                             .text());
  });
}

std::string SessionRun::take_warning() {
  if (!state_->stopped.empty())
    return fmt::format("The run is stopped: {} This call is not recorded.", state_->stopped);
  const std::string problem = std::exchange(state_->problem, {});
  return problem.empty() ? "" : "Warning: a call of this session could not be recorded: " + problem;
}

void SessionRun::send(std::string_view method, std::string params) {
  ++state_->in_flight;
  const bool starts = method == "run.start";
  if (starts) state_->starting = true;
  native_.request(method, std::move(params), [state = state_, starts](const NativeReply& reply) {
    --state->in_flight;
    if (starts) state->starting = false;
    if (starts && state->run_has_ended && reply.error["data"]["code"].string_or("") == "conflict")
      return state->run_has_ended();
    state->take(reply, starts);
    if (!starts) return;
    for (const auto& then : std::exchange(state->waiting, {})) then();
  });
}

void SessionRun::State::take(const NativeReply& reply, bool starts) {
  stopped.clear();
  if (reply.ok()) return;
  const std::string message = reply.error["message"].string_or("unknown error");
  if (reply.error["data"]["code"].string_or("") == "run_halted") {
    stopped = message;
    return;
  }
  if (starts) not_started = true;
  if (problem.empty()) problem = message;
}

}  // namespace muniment::mcp
