#include "adapters/record/hook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/ids.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t word_bytes_max = 250;   // limit for ids and names; the schemas allow 256
constexpr std::size_t path_bytes_max = 4000;  // the schemas allow 4,096
constexpr std::string_view agent_name = "claude-code";

std::string plain_text(const json::Value& value) {
  if (value.is(json::Kind::string)) return value.string_or("");
  return value && !value.is(json::Kind::null) ? std::string(value.source()) : std::string();
}

std::string short_word(const json::Value& value, std::string_view fallback) {
  const std::string text = preview(plain_text(value), word_bytes_max);
  return text.empty() ? std::string(fallback) : text;
}

// Converts "PreToolUse" to "pre_tool_use", the last part of a custom event type.
std::string snake_case(std::string_view name) {
  constexpr std::size_t bytes_max = 60;
  std::string out;
  for (const char c : name) {
    if (out.size() >= bytes_max) break;
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (upper && !out.empty() && out.back() != '_') out.push_back('_');
    out.push_back(upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '_');
  }
  return out;
}

// Returns an id of the agent as a run id, or its hash if it is not a valid run id.
std::string hook_run_id(std::string id) { return check_run_id(id) ? id : "claude-code-" + make_uuid_v8(id).text(); }

std::string text_content(std::string_view text) {
  json::Writer out;
  out.begin_array();
  if (!text.empty()) out.begin_object().member("type", "text").member("content", text).end_object();
  out.end_array();
  return std::move(out).text();
}

std::string tool_error(std::string_view type, std::string_view message) {
  json::Writer out;
  out.begin_object().member("error_type", type).member("message", message).end_object();
  return std::move(out).text();
}

// Translates one hook.
class Translation {
 public:
  Translation(const json::Value& hook, const HookPlace& place)
      : hook_(hook),
        place_(place),
        name_(plain_text(hook["hook_event_name"])),
        session_(plain_text(hook["session_id"])),
        agent_(plain_text(hook["agent_id"])) {}

  Result<Delivery> translate() {
    if (name_.empty() || session_.empty()) {
      return Error(Errc::invalid_argument, "not a hook of Claude Code: hook_event_name or session_id is missing");
    }
    name_runs();
    if (name_ == "SessionStart") {
      delivery_.begins = true;
      add_raw("");
    } else if (name_ == "UserPromptSubmit") {
      add_message("user", plain_text(hook_["prompt"]));
    } else if (name_ == "PreToolUse") {
      add_call();
    } else if (name_ == "PostToolUse" || name_ == "PostToolUseFailure") {
      add_result();
    } else if (name_ == "PermissionRequest") {
      add_question();
    } else if (name_ == "PreCompact") {
      add("context.compacted", "",
          "{\"trigger\":" + json::quote(short_word(hook_["trigger"], "auto")) + ",\"summary\":[]}");
      if (!plain_text(hook_["custom_instructions"]).empty()) add_raw("raw");
    } else if (name_ == "SubagentStart") {
      delivery_.begins = true;
      if (agent_.empty()) add_raw("");
    } else if (name_ == "Stop" || name_ == "SubagentStop") {
      add_stop();
    } else if (name_ == "SessionEnd") {
      end("session ended: " + short_word(hook_["reason"], "other"));
    } else {
      add_raw("");
    }
    return std::move(delivery_);
  }

 private:
  // A subagent has its own run, a child of the session's run.
  void name_runs() {
    const std::string session_run = hook_run_id("claude-code-" + session_);
    json::Writer out;
    out.begin_object()
        .member("run_id", session_run)
        .key("agent")
        .begin_object()
        .member("name", agent_name)
        .end_object();
    out.member("external_id", preview(session_, 1000)).member("client", "muniment record claude-code");
    if (const std::string cwd = plain_text(hook_["cwd"]); !cwd.empty()) out.member("cwd", preview(cwd, path_bytes_max));
    out.end_object();
    delivery_.run_id = session_run;
    delivery_.start = std::move(out).text();
    if (agent_.empty()) return;
    delivery_.parent_start = std::move(delivery_.start);
    delivery_.run_id = hook_run_id(session_run + "." + agent_);
    const std::string kind = short_word(hook_["agent_type"], "subagent");
    json::Writer child;
    child.begin_object()
        .member("run_id", delivery_.run_id)
        .key("agent")
        .begin_object()
        .member("name", kind)
        .end_object();
    child.member("external_id", preview(agent_, 1000)).member("client", "muniment record claude-code");
    child.key("parent").begin_object().member("run_id", session_run).member("kind", kind).end_object().end_object();
    delivery_.start = std::move(child).text();
  }

  // Returns the id of an event. `own` distinguishes it from all others of the session: an id of the agent, if there is
  // one.
  std::string id_of(std::string_view own) const {
    std::string where(own);
    if (own.empty() || own == "raw") {
      if (!place_.transcript_bytes) return make_uuid_v7(place_.now).text();
      where += fmt::format("@{}/{}", *place_.transcript_bytes, make_uuid_v8(hook_.source()).text());
    }
    return make_uuid_v8(fmt::format("claude-code hook/{}/{}/{}/{}", session_, agent_, name_, where)).text();
  }

  void add(std::string_view type, std::string_view own, std::string body) {
    delivery_.events.push_back({std::string(type), id_of(own), "", std::move(body)});
  }

  // Records the hook unchanged, so that unknown members are not lost.
  void add_raw(std::string_view own) {
    add("x.claude_code." + snake_case(name_), own, "{\"hook\":" + std::string(hook_.source()) + "}");
  }

  void add_message(std::string_view role, std::string_view text) {
    const std::string id = id_of("");
    json::Writer body;
    body.begin_object()
        .member("message_id", id)
        .member("role", role)
        .raw_member("content", text_content(text))
        .end_object();
    delivery_.events.push_back({"message.added", id, "", std::move(body).text()});
  }

  // Returns the agent's call id; for releases without ids, the hash of the call, which its result shares.
  std::string call_id() const {
    if (const std::string id = plain_text(hook_["tool_use_id"]); !id.empty()) return preview(id, word_bytes_max);
    return make_uuid_v8(plain_text(hook_["tool_name"]) + "\n" + json::canonical(hook_["tool_input"])).text();
  }
  std::string own_call(std::string_view what) const {
    return hook_["tool_use_id"] ? fmt::format("{}/{}", what, call_id()) : std::string();
  }

  void add_call() {
    const std::string name = short_word(hook_["tool_name"], "?");
    constexpr std::string_view mcp = "mcp__";  // mcp__<server>__<tool>
    json::Writer body;
    body.begin_object().member("call_id", call_id()).member("name", name);
    if (name.starts_with(mcp)) {
      const std::string_view rest = std::string_view(name).substr(mcp.size());
      body.member("kind", "mcp").member("server", rest.substr(0, rest.find("__")));
    } else {
      body.member("kind", name == "Bash" ? "command" : "function");
    }
    if (const json::Value input = hook_["tool_input"]) body.raw_member("arguments", input.source());
    body.end_object();
    add("tool.called", own_call("call"), std::move(body).text());
  }

  void add_result() {
    const json::Value response = hook_["tool_response"];
    const bool failed = name_ == "PostToolUseFailure";
    const bool interrupted =
        hook_["is_interrupt"].as_bool().value_or(response["interrupted"].as_bool().value_or(false));
    const std::string text = plain_text(failed ? hook_["error"] : response);
    json::Writer body;
    body.begin_object()
        .member("call_id", call_id())
        .member("status", interrupted ? "interrupted"
                          : failed    ? "error"
                                      : "ok");
    body.raw_member("content", text_content(text));
    if (failed) body.raw_member("error", tool_error("tool_failed", preview(text, 4000)));
    body.end_object();
    add("tool.returned", own_call("return"), std::move(body).text());
    if (!failed) add_file_change();
  }

  // Tools that write one file name it.
  void add_file_change() {
    constexpr std::array<std::string_view, 4> writers = {"Write", "Edit", "MultiEdit", "NotebookEdit"};
    if (std::ranges::find(writers, plain_text(hook_["tool_name"])) == writers.end()) return;
    const json::Value input = hook_["tool_input"];
    const std::string path = plain_text(input["file_path"] ? input["file_path"] : input["notebook_path"]);
    if (path.empty() || path.size() > path_bytes_max) return;
    json::Writer body;
    body.begin_object().member("path", path);
    body.member("change", plain_text(hook_["tool_response"]["type"]) == "create" ? "created" : "modified");
    body.member("call_id", call_id()).end_object();
    const std::string own = own_call("change");
    add("file.changed", own, std::move(body).text());
  }

  void add_question() {
    const std::string id = id_of("");
    const std::string input = hook_["tool_input"] ? " " + plain_text(hook_["tool_input"]) : "";
    json::Writer body;
    body.begin_object().member("approval_id", id);
    if (hook_["tool_use_id"]) body.member("call_id", call_id());
    body.member("question", preview(short_word(hook_["tool_name"], "?") + input, 8000));
    body.key("options").begin_array().string("allow").string("deny").end_array().end_object();
    delivery_.events.push_back({"approval.requested", id, "", std::move(body).text()});
  }

  void add_stop() {
    if (const std::string said = plain_text(hook_["last_assistant_message"]); !said.empty()) {
      add_message("assistant", said);
    } else {
      add_raw("");
    }
    if (name_ == "SubagentStop" && !agent_.empty()) end("");
  }

  void end(const std::string& summary) {
    delivery_.begins = true;
    json::Writer out;
    out.begin_object()
        .member("run_id", delivery_.run_id)
        .member("outcome", "unknown");  // the end of a session does not imply success
    if (!summary.empty()) out.member("summary", summary);
    out.end_object();
    delivery_.end = std::move(out).text();
  }

  const json::Value hook_;
  const HookPlace place_;
  const std::string name_;
  const std::string session_;
  const std::string agent_;
  Delivery delivery_;
};

constexpr std::string_view late_first = "{\"late\":true";  // no other body of this program begins with it

std::string late_body(const std::string& body) {
  return std::string(late_first) + (body == "{}" ? "}" : "," + body.substr(1));
}

std::string prompt_body(const std::string& body) {
  const std::string rest = body.substr(late_first.size());
  return "{" + (rest.starts_with(',') ? rest.substr(1) : rest);
}

}  // namespace

Result<Delivery> delivery_of_hook(const json::Value& hook, const HookPlace& place) {
  return Translation(hook, place).translate();
}

bool asks_leave(const json::Value& hook) {
  const std::string name = plain_text(hook["hook_event_name"]);
  return name == "PreToolUse" || name == "PermissionRequest";
}

std::string delivery_json(const Delivery& delivery, bool late) {
  json::Writer out;
  out.begin_object().member("version", 1).member("run_id", delivery.run_id).raw_member("start", delivery.start);
  if (!delivery.parent_start.empty()) out.raw_member("parent_start", delivery.parent_start);
  out.key("events").begin_array();
  for (const RecordedEvent& event : delivery.events) {
    out.begin_object().member("type", event.type).member("event_id", event.event_id);
    if (!event.occurred_at.empty()) out.member("occurred_at", event.occurred_at);
    out.raw_member("body", late ? late_body(event.body) : event.body).end_object();
  }
  out.end_array();
  if (!delivery.end.empty()) out.raw_member("end", delivery.end);
  out.member("begins", delivery.begins).member("in_doubt", delivery.in_doubt).end_object();
  return std::move(out).text();
}

Result<Delivery> delivery_of_json(const json::Value& json) {
  if (json["version"].as_int() != 1 || !json["start"]) return Error(Errc::invalid_argument, "not a spooled delivery");
  Delivery delivery;
  delivery.run_id = plain_text(json["run_id"]);
  delivery.start = std::string(json["start"].source());
  if (json["parent_start"]) delivery.parent_start = std::string(json["parent_start"].source());
  for (const json::Value event : json["events"]) {
    delivery.events.push_back({plain_text(event["type"]), plain_text(event["event_id"]),
                               plain_text(event["occurred_at"]), std::string(event["body"].source())});
  }
  if (json["end"]) delivery.end = std::string(json["end"].source());
  delivery.begins = json["begins"].as_bool().value_or(false);
  delivery.in_doubt = json["in_doubt"].as_bool().value_or(false);
  return delivery;
}

Delivery with_other_lateness(Delivery delivery) {
  for (RecordedEvent& event : delivery.events)
    event.body = event.body.starts_with(late_first) ? prompt_body(event.body) : late_body(event.body);
  return delivery;
}

}  // namespace muniment::cli
