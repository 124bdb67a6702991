#include "adapters/import/formats/formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "adapters/import/formats/chat_turns.hpp"
#include "adapters/import/formats/swe_agent_action.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view swe_agent_source = "swe_agent";

// Members of the file, of its turns and of its messages.
constexpr std::string_view swe_agent_members[] = {
    "action",          "agent",          "api_calls",      "best_attempt_idx", "cache_control",     "chooser",
    "content",         "edited_files30", "edited_files50", "edited_files70",   "environment",       "exit_status",
    "extra_info",      "index",          "instance_cost",  "is_demo",          "message_type",      "messages",
    "model_stats",     "query",          "replay_config",  "review",           "rloop_model_stats", "role",
    "signature",       "state",          "summarizer",     "swe_agent_hash",   "swe_agent_version", "swe_rex_hash",
    "swe_rex_version", "tags",           "thought",        "tokens_received",  "tokens_sent",       "tool_call_ids",
};

// The model that the configuration of the run names, which is JSON in a text, or an object.
std::string model_in(const json::Value& config) {
  if (const auto text = config.as_string()) {
    const auto document = json::parse(std::string_view(*text));
    return document && document->root().is(json::Kind::object) ? model_in(document->root()) : std::string();
  }
  const json::Value agent = config["agent"];
  if (auto name = agent["model"]["name"].as_string()) return *name;
  for (const json::Value one : agent["agent_configs"]) {
    if (auto name = one["model"]["name"].as_string()) return *name;
  }
  return {};
}

class SweAgentTrace {
 public:
  SweAgentTrace(const json::Value& source, ImportedRun& run)
      : source_(source), run_(run), turns_(run.events, swe_agent_members), model_(model_in(source["replay_config"])) {
    for (const json::Value entry : source["trajectory"]) entries_.push_back(entry);
    for (const json::Value message : source["history"]) {
      history_.push_back(message);
      known_.add(message);
    }
    is_demonstration_ = entries_.empty();
  }

  void run() {
    start();
    while (next_message_ < history_.size() && !is_turn(history_[next_message_])) add_message(history_[next_message_++]);
    if (is_demonstration_) {
      while (next_message_ < history_.size()) add_demonstrated_turn();
    } else {
      for (const json::Value& entry : entries_) add_turn(entry);
    }
    turns_.begin_item();
    turns_.end_step();
    while (next_message_ < history_.size()) add_message(history_[next_message_++]);
    turns_.begin_item();
    SourceRest info;
    if (source_["info"].is(json::Kind::object)) {
      info.keep(source_["info"], {"submission"});
    } else {
      info.keep_value("info", source_["info"]);
    }
    turns_.source(swe_agent_source, "info", info);
    finish();
  }

 private:
  void start() {
    run_.goal = goal_of();
    const std::string environment = source_["environment"].string_or("");
    if (!environment.empty()) run_.labels.emplace_back("environment", environment);
    if (!model_.empty()) run_.labels.emplace_back("model", model_);
    turns_.begin_item();
    SourceRest rest;
    rest.keep(source_, {"trajectory", "history", "info", "attempts"});
    // Lists of another type.
    if (!source_["trajectory"].is(json::Kind::array)) rest.keep_value("trajectory", source_["trajectory"]);
    if (!source_["history"].is(json::Kind::array)) rest.keep_value("history", source_["history"]);
    turns_.source(swe_agent_source, "file", rest);
  }

  // The heading of the task in the first user message that is not a demonstration.
  std::string goal_of() const {
    constexpr std::size_t heading_bytes_max = 300;
    for (const json::Value& message : history_) {
      if (message["role"].string_or("") != "user" || message["is_demo"].as_bool().value_or(false)) continue;
      return preview(task_heading(content_text(message["content"])), heading_bytes_max);
    }
    return {};
  }

  // Returns whether a message is the answer of the next turn, unlike a demonstration.
  bool is_turn(const json::Value& message) const {
    if (message["role"].string_or("") != "assistant") return false;
    if (is_demonstration_) return true;
    if (message["is_demo"].as_bool().value_or(false) || next_turn_ >= entries_.size()) return false;
    const json::Value entry = entries_[next_turn_];
    const std::string action = content_text(entry["action"]);
    return content_text(message["content"]) == content_text(entry["response"]) ||
           (!action.empty() && content_text(message["action"]) == action);
  }

  // A turn of the trajectory, and the messages of the history from its answer to the next one.
  void add_turn(const json::Value& entry) {
    turns_.begin_item();
    turns_.begin_step();
    json::Value message;
    if (next_message_ < history_.size() && is_turn(history_[next_message_])) message = history_[next_message_++];
    const std::string model_call = add_answer(entry["response"], entry["thought"], message);
    const TurnReturn result = add_tool(entry, message, model_call);
    add_effects(entry["state"], result.call_id, content_text(entry["observation"]));
    add_entry_rest(entry, message);
    ++next_turn_;
    while (next_message_ < history_.size() && !is_turn(history_[next_message_])) add_message(history_[next_message_++]);
  }

  // A turn of a demonstration: its answer, and the message after it as the observation.
  void add_demonstrated_turn() {
    const json::Value message = history_[next_message_++];
    turns_.begin_item();
    turns_.begin_step();
    const std::string model_call = add_answer(message["content"], message["thought"], message);
    SourceRest rest;
    rest.keep(message, {"role", "content", "thought", "action", "tool_calls", "thinking_blocks"});
    const bool has_result = next_message_ < history_.size() && !is_turn(history_[next_message_]);
    const bool calls = message["action"].is(json::Kind::string) || message["tool_calls"].size() > 0;
    if (calls) {
      TurnReturn result{.call_id = add_call(message["action"], message, model_call)};
      if (has_result) add_observation(history_[next_message_++], result);
    }
    turns_.source(swe_agent_source, "message", rest);
    while (next_message_ < history_.size() && !is_turn(history_[next_message_])) add_message(history_[next_message_++]);
  }

  void add_observation(const json::Value& message, TurnReturn& result) {
    constexpr std::string_view heading = "OBSERVATION:\n";
    turns_.begin_item();
    std::string text = content_text(message["content"]);
    result.parts = content_parts(message["content"], result.rest);
    result.rest.keep(message, {"role", "content", "tool_call_ids"});
    if (text.starts_with(heading)) text.erase(0, heading.size());
    result.status = tool_status(tool_, text);
    turns_.returned(result);
    if (const auto change = file_change(tool_, text, "")) {
      turns_.changed({.path = change->path, .change = change->change, .call_id = result.call_id});
    }
  }

  std::string add_answer(const json::Value& response, const json::Value& thought, const json::Value& message) {
    TurnAnswer answer{.model = model_};
    answer.parts = content_parts(response, answer.rest);
    if (answer.parts.empty()) answer.status = unknown_end;
    std::vector<std::string> reasoning;
    for (const json::Value block : message["thinking_blocks"]) {
      if (const auto text = block["thinking"].as_string()) reasoning.push_back(reasoning_part_json(*text));
    }
    answer.parts.insert(answer.parts.begin(), reasoning.begin(), reasoning.end());
    answer.rest.keep_value("thinking_blocks", reasoning.empty() ? message["thinking_blocks"] : json::Value());
    for (const json::Value block : message["thinking_blocks"])
      if (!reasoning.empty()) answer.rest.keep(block, {"type", "thinking"}, "thinking_block");
    for (const json::Value call : message["tool_calls"]) {
      const json::Value function = call["function"];
      answer.parts.push_back(
          tool_call_part_json(call["id"].string_or(""), function["name"].string_or(""), function["arguments"]));
      answer.rest.keep(call, {"id", "type", "function"}, "tool_call").keep(function, {"name", "arguments"}, "function");
    }
    const std::string model_call = turns_.answer(answer);
    const std::string text = content_text(thought);
    const bool repeats = message["tool_calls"].size() > 0 && text == content_text(response);
    if (!text.empty() && !repeats) {
      json::Writer body;
      body.begin_object().member("call_id", model_call).key("content").begin_array();
      body.raw(reasoning_part_json(text)).end_array().end_object();
      turns_.add("thought", "thought.recorded", std::move(body).text());
    }
    return model_call;
  }

  // The call that the answer asks for; the agent runs exactly one. Without it, the first word of the action.
  std::string add_call(const json::Value& action, const json::Value& message, const std::string& model_call) {
    const std::string text = content_text(action);
    TurnCall call;
    call.requested_by = model_call;
    tool_ = tool_of(text);
    for (const json::Value asked : message["tool_calls"]) {
      const json::Value function = asked["function"];
      if (!function["name"].is(json::Kind::string)) continue;
      tool_ = function["name"].string_or("");
      call.source_id = asked["id"].string_or("");
      call.arguments = arguments_json(function["arguments"]);
      if (action) call.rest.keep_value("action", action);
      break;
    }
    if (call.arguments.empty()) {
      json::Writer arguments;
      arguments.begin_object().member("action", text).end_object();
      call.arguments = std::move(arguments).text();
    }
    call.name = tool_;
    call.kind = is_own_tool(tool_) ? "function" : "command";
    return turns_.call(call);
  }

  TurnReturn add_tool(const json::Value& entry, const json::Value& message, const std::string& model_call) {
    TurnReturn result{.call_id = add_call(entry["action"], message, model_call)};
    result.parts = content_parts(entry["observation"], result.rest);
    if (result.parts.empty()) result.parts.push_back(text_part_json(""));
    result.status = tool_status(tool_, content_text(entry["observation"]));
    result.duration_us = microseconds_of(entry["execution_time"]);
    turns_.returned(result);
    return result;
  }

  // Adds the effects of the action on files and on the working directory, as far as the trace shows them.
  void add_effects(const json::Value& state, const std::string& call_id, const std::string& observation) {
    const AgentPlace place = place_of(state);
    if (const auto change = file_change(tool_, observation, place.open_file)) {
      turns_.changed({.path = change->path, .change = change->change, .call_id = call_id});
    }
    if (place == place_ || (place.open_file.empty() && place.working_dir.empty())) return;
    place_ = place;
    json::Writer body;
    body.begin_object().member("format", "merge").key("patch").begin_object();
    if (!place.open_file.empty()) body.member("open_file", preview(place.open_file, 4'096));
    if (!place.working_dir.empty()) body.member("working_dir", preview(place.working_dir, 4'096));
    body.end_object().end_object();
    turns_.add("place", "state.patched", std::move(body).text());
  }

  // Members that no other event has. A query repeats the history: only messages with a text that the history lacks are
  // kept. The history repeats an answer with its thought and action: differences from the trajectory are kept.
  void add_entry_rest(const json::Value& entry, const json::Value& message) {
    SourceRest rest;
    const bool has_time = microseconds_of(entry["execution_time"]).has_value();
    rest.keep(entry, {"action", "observation", "response", "thought", "query", "messages",
                      has_time ? "execution_time" : "query"});
    for (const char* name : {"query", "messages"}) keep_new_messages(rest, name, entry[name]);
    for (const char* name : {"action", "thought"}) {
      const json::Value member = entry[name];
      if (!member.is(json::Kind::string) && !member.is(json::Kind::array)) rest.keep_value(name, member);
    }
    turns_.source(swe_agent_source, "trajectory", rest);
    SourceRest repeated;
    if (content_text(message["content"]) != content_text(entry["response"])) {
      repeated.keep_value("content", message["content"]);
    } else {
      (void)content_parts(message["content"], repeated);  // the members besides the texts, such as cache_control
    }
    const auto same = [&](const char* name) { return content_text(message[name]) == content_text(entry[name]); };
    repeated.keep(message, {"content", same("thought") ? "thought" : "content", same("action") ? "action" : "content",
                            "tool_calls", "thinking_blocks"});
    turns_.source(swe_agent_source, "history", repeated);
  }

  void keep_new_messages(SourceRest& rest, std::string_view name, const json::Value& messages) {
    if (!messages.is(json::Kind::array)) {
      rest.keep_value(name, messages);
      return;
    }
    json::Writer list;
    list.begin_array();
    bool any = false;
    for (const json::Value message : messages) {
      if (known_.has_all(message)) continue;
      known_.add(message);
      any = true;
      write_value(list, message);
    }
    if (any) rest.keep_json(name, std::move(list.end_array()).text());
  }

  void add_message(const json::Value& message) {
    turns_.begin_item();
    const std::string role = message["role"].string_or("");
    const bool is_known = role == "system" || role == "user" || role == "assistant" || role == "tool";
    SourceRest rest;
    std::vector<std::string> parts = content_parts(message["content"], rest);
    if (message.is(json::Kind::object)) {
      rest.keep(message, {"content", is_known ? "role" : "content"});
    } else {
      rest.keep_value("message", message);
    }
    turns_.message(is_known ? role : "user", parts, rest);
  }

  // An agent that submits claims success. "submitted (exit_cost)" is an automatic submission when the budget is
  // exhausted, so its outcome is unknown.
  void finish() {
    const std::string status = source_["info"]["exit_status"].string_or("");
    run_.submission = source_["info"]["submission"].string_or("");
    if (status == "submitted") {
      run_.end.outcome = "success";
    } else {
      run_.end.outcome = status.empty() || status.starts_with("submitted") ? unknown_end : "failure";
    }
    run_.end.summary = !status.empty()     ? preview(status, 4'096)
                       : is_demonstration_ ? "a demonstration without an outcome"
                                           : "the trace has no exit status";
    run_.end.usage = usage();
  }

  // The trace counts tokens and cost only for the whole run.
  std::string usage() const {
    const json::Value stats = source_["info"]["model_stats"];
    const auto sent = stats["tokens_sent"].as_int();
    const auto received = stats["tokens_received"].as_int();
    if (!sent || !received || *sent < 0 || *received < 0) return {};
    json::Writer usage;
    usage.begin_object().member("input_tokens", *sent).member("output_tokens", *received);
    if (const auto cost = stats["instance_cost"].as_double(); cost && *cost >= 0) {
      usage.key("cost").begin_object().raw_member("amount", stats["instance_cost"].source());
      usage.member("currency", "USD").end_object();
    }
    return std::move(usage.end_object()).text();
  }

  const json::Value source_;
  ImportedRun& run_;
  TurnWriter turns_;
  const std::string model_;
  std::vector<json::Value> entries_;
  std::vector<json::Value> history_;
  StringSet known_;  // strings of the history, and of the queries so far
  bool is_demonstration_ = false;
  std::size_t next_message_ = 0;  // index in history_
  std::size_t next_turn_ = 0;     // the first turn whose answer has not yet appeared in the history
  std::string tool_;              // tool of the last call
  AgentPlace place_;
};

bool has_turns(const json::Value& source) { return has_object(source["trajectory"]) || has_object(source["history"]); }

ImportedRun translated_attempt(const json::Value& source) {
  ImportedRun run{.agent = "swe-agent"};
  SweAgentTrace(source, run).run();
  return run;
}

}  // namespace

bool is_swe_agent(const json::Value& record) {
  const auto is_list = [&](const char* name) { return record[name].is(json::Kind::array); };
  if (is_list("trajectory") && record["history"]) return true;
  for (const json::Value entry : record["trajectory"]) return entry["response"] && entry["action"];
  for (const json::Value attempt : record["attempts"]) return attempt["trajectory"] && attempt["history"];
  if (!is_list("history") || record["instance_id"]) return false;
  for (const json::Value message : record["history"]) return message["role"] && message["content"];
  return false;
}

Result<std::vector<ImportedRun>> translate_swe_agent(const json::Value& record) {
  std::vector<ImportedRun> runs;
  if (has_turns(record)) runs.push_back(translated_attempt(record));
  // The attempt that was chosen is the file's own trajectory.
  const auto chosen = record["info"]["best_attempt_idx"].as_int();
  std::int64_t number = 0;
  for (const json::Value attempt : record["attempts"]) {
    const bool is_chosen = !runs.empty() && chosen && *chosen == number;
    if (has_turns(attempt) && !is_chosen) {
      ImportedRun run = translated_attempt(attempt);
      run.labels.emplace_back("attempt", fmt::format("{}", number));
      runs.push_back(std::move(run));
    }
    ++number;
  }
  if (!runs.empty()) return runs;
  return Error(
      Errc::invalid_argument,
      "this is not a SWE-agent trajectory: it has neither a turn (\"trajectory\") nor a message (\"history\")");
}

}  // namespace muniment::cli
