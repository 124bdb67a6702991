// Translates sessions of Codex: rollout files, whose lines are a time, a type and a payload, and the events that
// `codex exec --json` prints, which name no model and count tokens per turn.
#include "adapters/import/formats/formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "adapters/import/formats/chat_turns.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view codex_agent = "codex";
constexpr std::size_t exit_header_bytes = 512;  // the result of a shell begins with a header that has its exit code

// Members of the lines and of their payloads.
constexpr std::string_view codex_members[] = {
    "action",
    "approval_policy",
    "base_instructions",
    "cli_version",
    "collaboration_mode",
    "cwd",
    "effort",
    "encrypted_content",
    "git",
    "id",
    "info",
    "instructions",
    "internal_chat_message_metadata_passthrough",
    "message",
    "metadata",
    "model",
    "model_context_window",
    "model_provider",
    "namespace",
    "originator",
    "payload",
    "personality",
    "phase",
    "rate_limits",
    "reasoning",
    "replacement_history",
    "sandbox_policy",
    "source",
    "status",
    "summary",
    "timestamp",
    "token_count",
    "truncation_policy",
    "turn_id",
    "type",
};

constexpr std::string_view rollout_types[] = {"session_meta", "response_item", "event_msg", "turn_context",
                                              "compacted"};
constexpr std::string_view exec_types[] = {"thread.started", "turn.started", "turn.completed", "turn.failed",
                                           "item.started",   "item.updated", "item.completed"};

bool is_rollout_line(const json::Value& line) {
  return std::ranges::find(rollout_types, line["type"].string_or("")) != std::end(rollout_types) && line["payload"];
}

bool is_exec_line(const json::Value& line) {
  return std::ranges::find(exec_types, line["type"].string_or("")) != std::end(exec_types);
}

// Returns whether an item of a response is a part of the model's answer.
bool is_answer_item(const json::Value& item) {
  const std::string type = item["type"].string_or("");
  return type == "reasoning" || type == "web_search_call" || type == "function_call" || type == "custom_tool_call" ||
         type == "local_shell_call" || (type == "message" && item["role"].string_or("") == "assistant");
}

// Events repeat the items of responses for the screen.
bool is_repeated(const json::Value& line) {
  const std::string type = line["payload"]["type"].string_or("");
  return line["type"].string_or("") == "event_msg" &&
         (type == "user_message" || type == "agent_message" || type == "agent_reasoning");
}

bool is_output(std::string_view type) { return type == "function_call_output" || type == "custom_tool_call_output"; }

// Returns the new count of tokens in a line; nothing for other lines, and for a count that repeats the previous one.
json::Value new_count(const json::Value& line, std::string& total) {
  const json::Value info = line["payload"]["info"];
  if (line["payload"]["type"].string_or("") != "token_count" || !info["last_token_usage"]) return {};
  std::string sum(info["total_token_usage"].source());
  if (sum == total) return {};
  total = std::move(sum);
  return line["payload"];
}

// Returns whether the line ends the answer before it. Calls that run at once have other events between them.
bool ends_answer(const json::Value& line, const json::Value& count) {
  constexpr std::string_view ends[] = {"task_started",  "turn_started", "task_complete",
                                       "turn_complete", "turn_aborted", "error"};
  if (line["type"].string_or("") != "event_msg") return !is_answer_item(line["payload"]);
  return count || std::ranges::find(ends, line["payload"]["type"].string_or("")) != std::end(ends);
}

struct Output {
  std::string text;
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::int64_t> duration_us = {};
  std::string_view status = unknown_end;
};

// The exit code is in the metadata of an output that is JSON, or in the header of a text.
Output output_of(const json::Value& output) {
  Output out{.text = content_text(output)};
  if (const auto success = output["success"].as_bool()) out.status = *success ? "ok" : "error";
  if (output["content"]) out.text = content_text(output["content"]);
  if (out.text.starts_with('{')) {
    if (const auto document = json::parse(std::string_view(out.text))) {
      out.exit_code = document->root()["metadata"]["exit_code"].as_int();
      out.duration_us = microseconds_of(document->root()["metadata"]["duration_seconds"]);
    }
  }
  const std::string_view header = std::string_view(out.text).substr(0, exit_header_bytes);
  for (const std::string_view opening : {"Process exited with code ", "Exit code: "}) {
    const std::size_t at = header.find(opening);
    const bool begins_a_line = at != std::string_view::npos && (at == 0 || header[at - 1] == '\n');
    if (out.exit_code || !begins_a_line) continue;
    const std::string_view rest = header.substr(at + opening.size());
    out.exit_code = parse_decimal(rest.substr(0, rest.find('\n')));
  }
  if (out.exit_code) out.status = *out.exit_code == 0 ? "ok" : "error";
  return out;
}

// The files that a patch names.
std::vector<TurnChange> changes_of(std::string_view patch) {
  constexpr std::pair<std::string_view, std::string_view> openings[] = {
      {"*** Add File: ", "created"}, {"*** Update File: ", "modified"}, {"*** Delete File: ", "deleted"}};
  constexpr std::string_view moved = "*** Move to: ";
  std::vector<TurnChange> changes;
  while (!patch.empty()) {
    const std::string_view line = patch.substr(0, patch.find('\n'));
    patch.remove_prefix(std::min(patch.size(), line.size() + 1));
    for (const auto& [opening, change] : openings) {
      if (line.starts_with(opening)) changes.push_back({std::string(line.substr(opening.size())), change});
    }
    if (!line.starts_with(moved) || changes.empty()) continue;
    changes.back().from_path = std::exchange(changes.back().path, std::string(line.substr(moved.size())));
    changes.back().change = "renamed";
  }
  std::erase_if(changes, [](const TurnChange& change) { return change.path.empty(); });
  return changes;
}

std::string_view kind_of(std::string_view name) {
  constexpr std::string_view shells[] = {"shell", "shell_command", "exec_command", "local_shell", "unified_exec"};
  return std::ranges::find(shells, name) != std::end(shells) ? "command" : "function";
}

class CodexTrace {
 public:
  explicit CodexTrace(ImportedRun& run) : run_(run), turns_(run.events, codex_members) {}

  // Call it for all lines before the first call of `add`: the count of an answer follows the results of its calls.
  void count(const json::Value& line) {
    const json::Value found = new_count(line, counted_);
    const bool answers = line["type"].string_or("") == "response_item" && is_answer_item(line["payload"]);
    if (answers && !counting_) counts_.emplace_back();
    if (found && !counts_.empty() && !counts_.back()) counts_.back() = found;
    counting_ = (counting_ || answers) && !ends_answer(line, found);
  }

  void add(const json::Value& line) {
    const std::string type = line["type"].string_or("");
    if (is_exec_line(line) || (type == "error" && !line["payload"])) return add_exec(line, type);
    const json::Value payload = line["payload"];
    if (type == "response_item" && is_answer_item(payload)) return open_answer(line);
    if (ends_answer(line, new_count(line, seen_))) close_answer();
    if (is_repeated(line)) return add_repeated(line);
    turns_.begin_item(source_time(line["timestamp"]));
    if (type == "session_meta") return add_session(payload);
    if (type == "turn_context") return add_context(payload);
    if (type == "compacted") return add_compaction(payload);
    if (type == "response_item" && is_output(payload["type"].string_or(""))) return add_output(payload);
    if (type == "response_item" && payload["type"].string_or("") == "message") return add_message(payload);
    if (type == "event_msg") return add_event(payload);
    SourceRest rest;
    turns_.source("codex", "line", rest.keep(line, {"timestamp"}));
  }

  void end() {
    close_answer();
    turns_.begin_item();
    for (const auto& [id, item] : started_) add_item(item, false);
    turns_.end_step();
    if (input_tokens_ + output_tokens_ == 0) return;
    json::Writer usage;
    usage.begin_object().member("input_tokens", input_tokens_).member("output_tokens", output_tokens_);
    run_.end.usage = std::move(usage.member("cached_input_tokens", cached_tokens_).end_object()).text();
  }

 private:
  struct Call {
    std::string call_id;
    std::string patch;  // of apply_patch
  };

  void add_session(const json::Value& payload) {
    SourceRest rest;
    if (run_.external_id.empty()) {  // a fork repeats the lines of the session that it continues
      run_.external_id = payload["id"].string_or("");
      for (const char* name : {"cli_version", "originator", "cwd", "model_provider"})
        label_run(run_, name, payload[name]);
      label_run(run_, "git_branch", payload["git"]["branch"]);
      label_run(run_, "git_commit", payload["git"]["commit_hash"]);
    }
    turns_.source("codex", "session", rest.keep(payload, {}));
  }

  void add_context(const json::Value& payload) {
    model_ = payload["model"].string_or(model_);
    if (payload.source() == context_) return;
    context_ = payload.source();
    SourceRest rest;
    turns_.source("codex", "turn_context", rest.keep(payload, {}));
  }

  void add_compaction(const json::Value& payload) {
    json::Writer body;
    body.begin_object().member("trigger", "compaction").key("summary").begin_array();
    const std::string summary = payload["message"].string_or("");
    if (!summary.empty()) body.raw(text_part_json(summary));
    body.end_array();
    SourceRest rest;
    rest.keep(payload, {"message"}).write(body, turns_.known());
    turns_.add("compacted", "context.compacted", std::move(body.end_object()).text());
  }

  // Only its time is new.
  void add_repeated(const json::Value& line) {
    const json::Value payload = line["payload"];
    if (payload["type"].string_or("") == "user_message" && run_.goal.empty())
      run_.goal = payload["message"].string_or("");
    times_.push_back(line["timestamp"]);
  }

  void keep_times(SourceRest& rest) {
    for (const json::Value& time : std::exchange(times_, {})) rest.detail("timestamp", time);
  }

  void add_event(const json::Value& payload) {
    const std::string type = payload["type"].string_or("");
    if (type == "error") return add_error(payload["message"].string_or(""));
    if (type == "exec_command_end") exit_codes_[payload["call_id"].string_or("")] = payload["exit_code"].as_int();
    if (type == "token_count" && placed_count_ == payload.source()) return;
    SourceRest rest;
    turns_.source("codex", "event", rest.keep(payload, {}));
  }

  void add_error(const std::string& message) {
    json::Writer body;
    body.begin_object().member("error_type", "error").member("message", message).end_object();
    turns_.add("error", "error.raised", std::move(body).text());
  }

  void add_message(const json::Value& item) {
    SourceRest rest;
    const std::vector<std::string> parts = content_parts(item["content"], rest);
    const std::string role = item["role"].string_or("");
    const bool is_known = role == "system" || role == "developer" || role == "user";
    rest.keep(item, {"type", "content", is_known ? "role" : "type"});
    keep_times(rest);
    turns_.message(is_known ? role : "user", parts, rest);
  }

  void open_answer(const json::Value& line) {
    if (!answer_items_.empty()) times_.push_back(answered_at_);
    answer_items_.push_back(line["payload"]);
    answered_at_ = line["timestamp"];
  }

  // Records the items since the last result as one answer, then its calls.
  void close_answer() {
    if (answer_items_.empty()) return;
    const std::vector<json::Value> items = std::exchange(answer_items_, {});
    turns_.begin_item(source_time(answered_at_));
    turns_.begin_step();
    TurnAnswer answer{.model = model_};
    keep_times(answer.rest);
    for (const json::Value& item : items) add_part(answer, item);
    if (const json::Value counted = answers_ < counts_.size() ? counts_[answers_] : json::Value()) {
      answer.usage = call_usage(counted["info"]["last_token_usage"], {});
      answer.rest.detail("token_count", counted);
      placed_count_ = counted.source();
    }
    ++answers_;
    const std::string model_call = turns_.answer(answer);
    for (const json::Value& item : items) add_call(item, model_call);
  }

  static void add_part(TurnAnswer& answer, const json::Value& item) {
    const std::string type = item["type"].string_or("");
    if (type == "message") {
      for (std::string& part : content_parts(item["content"], answer.rest)) answer.parts.push_back(std::move(part));
      answer.rest.keep(item, {"type", "role", "content"}, "message");
    } else if (type == "reasoning") {
      for (const char* list : {"summary", "content"}) {
        for (const json::Value part : item[list]) {
          if (const auto text = part["text"].as_string()) answer.parts.push_back(reasoning_part_json(*text));
        }
      }
      answer.rest.keep(item, {"type", "summary", "content"}, "reasoning");
    } else {
      answer.parts.push_back(tool_call_part_json(item["call_id"].string_or(""), name_of(item), arguments_of(item)));
    }
  }

  static std::string name_of(const json::Value& item) {
    const std::string type = item["type"].string_or("");
    return type == "local_shell_call"  ? "local_shell"
           : type == "web_search_call" ? "web_search"
                                       : item["name"].string_or("");
  }

  static json::Value arguments_of(const json::Value& item) {
    return item["arguments"] ? item["arguments"] : item["input"] ? item["input"] : item["action"];
  }

  void add_call(const json::Value& item, const std::string& requested_by) {
    const std::string type = item["type"].string_or("");
    if (type == "message" || type == "reasoning") return;
    TurnCall call{.name = name_of(item),
                  .kind = kind_of(name_of(item)),
                  .source_id = item["call_id"].string_or(""),
                  .requested_by = requested_by,
                  .arguments = arguments_json(arguments_of(item))};
    call.rest.keep(item, {"type", "name", "call_id", "arguments", "input", "action"});
    const std::string call_id = turns_.call(call);
    if (type == "web_search_call")  // its result is in the model's answer only
      return turns_.returned({.call_id = call_id,
                              .status = item["status"].string_or("") == "completed" ? "ok" : unknown_end,
                              .occurred_at = std::string()});
    open_[call.source_id] = {call_id, call.name == "apply_patch" ? item["input"].string_or("") : std::string()};
  }

  void add_output(const json::Value& item) {
    const std::string source_id = item["call_id"].string_or("");
    Output output = output_of(item["output"]);
    SourceRest rest;
    rest.keep(item, {"type", "call_id", "output"});
    const auto found = open_.find(source_id);
    std::vector<std::string> parts;
    if (!output.text.empty()) parts.push_back(text_part_json(output.text));
    if (found == open_.end()) return turns_.message("tool", parts, rest);
    const Call call = found->second;
    open_.erase(found);
    if (const auto known = exit_codes_.find(source_id); known != exit_codes_.end() && known->second) {
      output.exit_code = known->second;
      output.status = *known->second == 0 ? "ok" : "error";
    }
    turns_.returned({.call_id = call.call_id,
                     .status = output.status,
                     .parts = std::move(parts),
                     .exit_code = output.exit_code,
                     .duration_us = output.duration_us,
                     .rest = std::move(rest)});
    if (output.status == "error") return;
    for (TurnChange& change : changes_of(call.patch)) {
      change.call_id = call.call_id;
      turns_.changed(change);
    }
  }

  void add_exec(const json::Value& line, const std::string& type) {
    const json::Value item = line["item"];
    const std::string id = item["id"].string_or("");
    turns_.begin_item(source_time(line["timestamp"]));
    if (type == "thread.started") run_.external_id = line["thread_id"].string_or("");
    if (type == "item.started") started_[id] = item;
    if (type == "item.completed") {
      if (const auto began = started_.find(id); began != started_.end()) {
        began_status_ = began->second["status"];
        started_.erase(began);
      }
      add_item(item, true);
      began_status_ = {};
    }
    if (type == "turn.completed") {
      const std::string usage = call_usage(line["usage"], {});
      input_tokens_ += tokens_in(usage, "input_tokens");
      output_tokens_ += tokens_in(usage, "output_tokens");
      cached_tokens_ += tokens_in(usage, "cached_input_tokens");
    }
    const std::string message =
        line[type == "error" ? "message" : "error"]["message"].string_or(line["message"].string_or(""));
    if (type == "turn.failed" || type == "error") add_error(message);
    if (type == "turn.failed") run_.end = {"failure", preview(message, 4'096)};
  }

  // An item without an end is a call without a result.
  void add_item(const json::Value& item, bool is_complete) {
    const std::string type = item["type"].string_or(item["item_type"].string_or(""));
    const std::string text = item["text"].string_or("");
    if (type == "agent_message" || type == "assistant_message") {
      turns_.begin_step();
      TurnAnswer answer{.parts = {text_part_json(text)}};
      answer.rest.keep(item, {"type", "item_type", "text"});
      turns_.answer(answer);
    } else if (type == "reasoning") {
      json::Writer body;
      body.begin_object().key("content").begin_array().raw(reasoning_part_json(text)).end_array();
      SourceRest rest;
      rest.keep(item, {"type", "item_type", "text"}).write(body, turns_.known());
      body.end_object();
      turns_.add("thought", "thought.recorded", std::move(body).text());
    } else if (type == "command_execution") {
      json::Writer arguments;
      arguments.begin_object().member("command", item["command"].string_or("")).end_object();
      add_run(item, {.name = "shell", .kind = "command", .arguments = std::move(arguments).text()}, is_complete);
    } else if (type == "mcp_tool_call") {
      add_run(item,
              {.name = item["tool"].string_or(""),
               .kind = "mcp",
               .arguments = arguments_json(item["arguments"]),
               .server = item["server"].string_or("")},
              is_complete);
    } else if (type == "file_change" && is_complete) {
      add_changes(item);
    } else {
      SourceRest rest;
      turns_.source("codex", "item", rest.keep(item, {}));
    }
  }

  void add_run(const json::Value& item, TurnCall call, bool is_complete) {
    call.source_id = item["id"].string_or("");
    call.rest.keep(item, {"id", "type", "item_type", "command", "aggregated_output", "exit_code", "tool", "server",
                          "arguments", "result"});
    call.rest.detail("began", began_status_);
    TurnReturn result{.call_id = turns_.call(call), .exit_code = item["exit_code"].as_int()};
    if (!is_complete) return;
    const std::string status = item["status"].string_or("");
    if (status == "completed" || status == "failed") result.status = status == "completed" ? "ok" : "error";
    if (result.exit_code) result.status = *result.exit_code == 0 ? "ok" : "error";
    result.parts =
        content_parts(item["aggregated_output"] ? item["aggregated_output"] : item["result"]["content"], result.rest);
    turns_.returned(result);
  }

  void add_changes(const json::Value& item) {
    constexpr std::pair<std::string_view, std::string_view> changes[] = {
        {"add", "created"}, {"update", "modified"}, {"delete", "deleted"}};
    for (const json::Value change : item["changes"]) {
      const std::string kind = change["kind"].string_or("");
      const auto found = std::ranges::find(changes, kind, &std::pair<std::string_view, std::string_view>::first);
      const std::string path = change["path"].string_or("");
      if (found != std::end(changes) && !path.empty() && item["status"].string_or("") != "failed")
        turns_.changed({path, found->second});
    }
    SourceRest rest;
    turns_.source("codex", "item", rest.keep(item, {"type", "item_type", "changes"}));
  }

  ImportedRun& run_;
  TurnWriter turns_;
  std::string model_, context_;
  // Counts of the answers, in order, and the state of the reading that found them.
  std::vector<json::Value> counts_;
  bool counting_ = false;
  std::string counted_, seen_, placed_count_;
  std::size_t answers_ = 0;
  std::vector<json::Value> answer_items_;  // of the answer that is not recorded yet
  json::Value answered_at_;
  std::vector<json::Value> times_;    // of lines that are a part of the next event
  std::map<std::string, Call> open_;  // by the id of the source
  std::map<std::string, std::optional<std::int64_t>> exit_codes_;
  std::map<std::string, json::Value> started_;  // items of exec without an end
  json::Value began_status_;                    // of the item that ends
  std::int64_t input_tokens_ = 0, output_tokens_ = 0, cached_tokens_ = 0;
};

}  // namespace

bool is_codex_line(const json::Value& record) { return is_rollout_line(record) || is_exec_line(record); }

Result<ImportedRun> translate_codex(const std::vector<json::Value>& lines) {
  if (std::ranges::none_of(lines, is_codex_line))
    return Error(Errc::invalid_argument, "no line is one of a session of Codex: expected a type and a payload");
  ImportedRun run{.agent = std::string(codex_agent)};
  run.end = {std::string(unknown_end), "the format has no outcome"};
  CodexTrace trace(run);
  for (const json::Value& line : lines) trace.count(line);
  for (const json::Value& line : lines) trace.add(line);
  trace.end();
  return run;
}

}  // namespace muniment::cli
