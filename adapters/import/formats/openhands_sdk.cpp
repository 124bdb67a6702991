#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "adapters/import/formats/openhands_events.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

// Events about the program around the agent.
constexpr std::string_view inner_kinds[] = {
    "CondensationRequest", "CondensationSummaryEvent", "HookExecutionEvent", "InterruptEvent", "LLMCompletionLogEvent",
    "PauseEvent",          "StreamingDeltaEvent",      "TokenEvent",
};

void add_texts(std::vector<std::string>& parts, const json::Value& content, SourceRest& rest) {
  for (std::string& part : content_parts(content, rest)) parts.push_back(std::move(part));
}

void add_reasoning(TurnAnswer& answer, const json::Value& source) {
  const std::string reasoning = source["reasoning_content"].string_or("");
  if (!reasoning.empty()) answer.parts.push_back(reasoning_part_json(reasoning));
  for (const json::Value block : source["thinking_blocks"]) {
    const auto text = block["thinking"].as_string();
    if (text && *text != reasoning) answer.parts.push_back(reasoning_part_json(*text));
    answer.rest.keep(block, {"type", "thinking"}, "thinking_block");
  }
  const json::Value item = source["responses_reasoning_item"];
  for (const char* name : {"summary", "content"}) {
    for (const json::Value text : item[name]) {
      if (const auto words = text.as_string()) answer.parts.push_back(reasoning_part_json(*words));
    }
  }
  answer.rest.keep(item, {"summary", "content"}, "responses_reasoning_item");
}

// Members of an action that differ from those of the call's arguments.
void keep_action(SourceRest& rest, const json::Value& action, const std::string& arguments) {
  if (!action.is(json::Kind::object)) {
    rest.keep_value("action", action);
    return;
  }
  const auto document = json::parse(std::string_view(arguments));
  const json::Value asked = document ? document->root() : json::Value();
  json::Writer out;
  out.begin_object();
  for (const json::Value member : action) {
    const std::string key = member.key();
    if (member.is(json::Kind::null) || asked[key].source() == member.source()) continue;
    const auto text = member.as_string();
    if (text && asked[key].as_string() == text) continue;
    write_value(out.key(key), member);
  }
  const std::string text = std::move(out.end_object()).text();
  if (text != "{}") rest.keep_json("action", text);
}

}  // namespace

void OpenHandsSdkEvents::look_ahead(const json::Value& event) {
  const std::string id = event["llm_response_id"].string_or("");
  if (event["kind"].string_or("") == "ActionEvent" && !id.empty()) actions_of_[id].push_back(event);
  const json::Value value = event["value"];
  const json::Value stats = event["key"].string_or("") == "stats" ? value : value["stats"];
  std::string model = value["agent"]["llm"]["model"].string_or("");
  if (model.empty()) model = stats["usage_to_metrics"]["default"]["model_name"].string_or("");
  if (!model.empty()) state_.model = std::move(model);
}

void OpenHandsSdkEvents::add(const json::Value& event) {
  turns_.begin_item(source_time(event["timestamp"]));
  const std::string kind = event["kind"].string_or("");
  if (kind == "SystemPromptEvent") return add_system(event);
  if (kind == "MessageEvent") return add_message(event);
  if (kind == "ActionEvent") return add_action(event);
  if (kind == "ObservationEvent") return add_return(event);
  if (kind == "UserRejectObservation") return add_refusal(event, "denied", event["rejection_reason"]);
  if (kind == "AgentErrorEvent") return add_refusal(event, "error", event["error"]);
  if (kind == "ConversationErrorEvent") return add_error(event);
  if (kind == "Condensation") return add_condensation(event);
  if (kind == "ConversationStateUpdateEvent") return add_state(event);
  SourceRest rest;
  if (std::ranges::find(inner_kinds, kind) != std::end(inner_kinds)) {
    rest.detail("event", event);
  } else {
    rest.keep_value("event", event);
  }
  turns_.source("openhands", "event", rest);
}

void OpenHandsSdkEvents::add_system(const json::Value& event) {
  SourceRest rest;
  std::vector<std::string> parts;
  for (const char* name : {"system_prompt", "dynamic_context"}) {
    const json::Value prompt = event[name];
    if (const auto text = prompt["text"].as_string()) {
      parts.push_back(text_part_json(*text));
      rest.keep(prompt, {"type", "text", "cache_prompt"}, name);
    } else if (const auto plain = prompt.as_string()) {
      parts.push_back(text_part_json(*plain));
    } else {
      rest.keep_value(name, prompt);
    }
  }
  rest.keep(event, {"kind", "timestamp", "source", "system_prompt", "dynamic_context"});
  turns_.message("system", parts, rest);
}

void OpenHandsSdkEvents::add_message(const json::Value& event) {
  const json::Value message = event["llm_message"];
  TurnAnswer answer{.model = state_.model};
  const bool is_agent = event["source"].string_or("") == "agent";
  add_reasoning(answer, message);
  add_texts(answer.parts, message["content"], answer.rest);
  add_texts(answer.parts, event["extended_content"], answer.rest);
  answer.rest.keep(event, {"kind", "timestamp", "source", "llm_message", "extended_content"});
  const std::string role = message["role"].string_or("");
  const bool is_known = role == "system" || role == "user" || role == "tool" || role == "assistant";
  answer.rest.keep(
      message,
      {"content", "reasoning_content", "thinking_blocks", "responses_reasoning_item", is_known ? "role" : "content"},
      "llm_message");
  if (!is_agent) {
    if (state_.run.goal.empty() && event["source"].string_or("") == "user")
      state_.run.goal = task_heading(content_text(message["content"]));
    return turns_.message(is_known ? role : "user", answer.parts, answer.rest);
  }
  turns_.begin_step();
  const std::string id = event["llm_response_id"].string_or("");
  if (const auto found = state_.usage_of.find(id); found != state_.usage_of.end()) answer.usage = found->second;
  if (const auto found = state_.duration_of.find(id); found != state_.duration_of.end())
    answer.duration_us = found->second;
  state_.count(answer.usage);
  state_.model_call = turns_.answer(answer);
  state_.response_id = id;
}

// The first action of an answer records it, with the calls of the others.
void OpenHandsSdkEvents::add_answer(const json::Value& event) {
  turns_.begin_step();
  const std::string id = event["llm_response_id"].string_or("");
  TurnAnswer answer{.model = state_.model};
  add_reasoning(answer, event);
  add_texts(answer.parts, event["thought"], answer.rest);
  std::vector<json::Value> actions = {event};
  if (const auto found = actions_of_.find(id); found != actions_of_.end()) actions = found->second;
  for (const json::Value& action : actions) {
    const json::Value call = action["tool_call"];
    answer.parts.push_back(tool_call_part_json(call["id"].string_or(action["tool_call_id"].string_or("")),
                                               call["name"].string_or(action["tool_name"].string_or("")),
                                               call["arguments"]));
  }
  if (const auto found = state_.usage_of.find(id); found != state_.usage_of.end()) answer.usage = found->second;
  if (const auto found = state_.duration_of.find(id); found != state_.duration_of.end())
    answer.duration_us = found->second;
  state_.count(answer.usage);
  state_.model_call = turns_.answer(answer);
  state_.response_id = id;
}

void OpenHandsSdkEvents::add_action(const json::Value& event) {
  const std::string id = event["llm_response_id"].string_or("");
  const bool is_same_answer = !id.empty() && id == state_.response_id;
  const json::Value asked = event["tool_call"], action = event["action"];
  TurnCall call{.name = event["tool_name"].string_or(asked["name"].string_or(""))};
  if (is_same_answer) {
    // A thought of a later action of the answer.
    if (event["thought"].size() > 0) call.rest.keep_value("thought", event["thought"]);
    call.rest.keep_value("reasoning_content", event["reasoning_content"]);
  } else {
    add_answer(event);
  }
  const std::string kind = action["kind"].string_or("");
  const bool is_command = kind == "TerminalAction" || kind == "ExecuteBashAction";
  call.kind = is_command ? "command" : kind == "MCPToolAction" ? "mcp" : "function";
  call.source_id = event["tool_call_id"].string_or(asked["id"].string_or(""));
  call.requested_by = state_.model_call;
  call.arguments = asked["arguments"] ? arguments_json(asked["arguments"]) : arguments_json(action);
  if (asked["arguments"]) keep_action(call.rest, action, call.arguments);
  call.rest.keep(asked, {"id", "name", "arguments"}, "tool_call");
  call.rest.keep(event, {"kind", "timestamp", "source", "thought", "reasoning_content", "thinking_blocks",
                         "responses_reasoning_item", "action", "tool_name", "tool_call_id", "tool_call"});
  const std::string call_id = turns_.call(call);
  state_.remember({event["id"].string_or(""), call.source_id}, {call_id, kind, action["command"].string_or("")});
  if (kind != "FinishAction" && call.name != "finish") return;
  state_.outcome = "success";
  state_.summary = action["message"].string_or("the agent finished");
}

void OpenHandsSdkEvents::add_return(const json::Value& event) {
  const json::Value observation = event["observation"];
  TurnReturn result;
  add_texts(result.parts, observation["content"], result.rest);
  add_texts(result.parts, observation["output"], result.rest);
  if (const auto error = observation["error"].as_string(); error && !error->empty()) {
    result.parts.push_back(text_part_json(*error));
    result.status = "error";
  }
  add_texts(result.parts, event["extended_content"], result.rest);
  auto exit_code = observation["exit_code"].as_int();
  if (!exit_code) exit_code = observation["metadata"]["exit_code"].as_int();
  const auto is_error = observation["is_error"].as_bool();
  if (exit_code && *exit_code != -1) {
    result.exit_code = exit_code;
    result.status = *exit_code == 0 ? "ok" : "error";
  } else if (is_error && result.status != "error") {
    result.status = "ok";
  }
  if (is_error.value_or(false)) result.status = "error";
  if (observation["timeout"].as_bool().value_or(false)) result.status = "timeout";
  const auto call = state_.take({event["tool_call_id"].string_or(""), event["action_id"].string_or("")});
  result.call_id = call.call_id;
  result.rest.keep(event,
                   {"kind", "timestamp", "source", "observation", "tool_name", "tool_call_id", "extended_content"});
  result.rest.keep(observation, {"content", "output", "error", "is_error", result.exit_code ? "exit_code" : "content"},
                   "observation");
  if (result.call_id.empty()) {
    result.rest.keep_value("tool_name", event["tool_name"]).keep_value("tool_call_id", event["tool_call_id"]);
    return turns_.message("tool", result.parts, result.rest);
  }
  turns_.returned(result);
  if (result.status != "error" && result.status != "timeout") add_changes(observation, call);
}

// The editors' observations name a file with its text before and after; that of a patch names several.
void OpenHandsSdkEvents::add_changes(const json::Value& observation, const OpenHandsState::Call& call) {
  for (const json::Value change : observation["commit"]["changes"]) {
    const std::string type = change["type"].string_or("");
    const std::string moved = change["move_path"].string_or("");
    const std::string_view word = type == "add" ? "created" : type == "delete" ? "deleted" : "modified";
    turns_.changed({.path = moved.empty() ? change.key() : moved,
                    .change = moved.empty() ? word : "renamed",
                    .call_id = call.call_id,
                    .from_path = moved.empty() ? std::string() : change.key()});
  }
  const std::string command = observation["command"].string_or(call.command);
  const std::string path = observation["path"].string_or(observation["file_path"].string_or(""));
  const bool is_editor =
      command == "create" || command == "str_replace" || command == "insert" || command == "undo_edit";
  const auto before = observation["old_content"].as_string(), after = observation["new_content"].as_string();
  if (path.empty() || (!is_editor && !after) || command == "view") return;
  if (before && after && *before == *after) return;
  const auto existed = observation["prev_exist"].as_bool();
  const bool is_new = observation["is_new_file"].as_bool().value_or(false) ||
                      (command == "create" ? !existed.value_or(false) : command.empty() && existed && !*existed);
  turns_.changed({.path = path, .change = is_new ? "created" : "modified", .call_id = call.call_id});
}

void OpenHandsSdkEvents::add_refusal(const json::Value& event, std::string_view status, const json::Value& text) {
  TurnReturn result;
  result.status = status;
  result.call_id = state_.take({event["tool_call_id"].string_or(""), event["action_id"].string_or("")}).call_id;
  result.parts = content_parts(text, result.rest);
  result.rest.keep(event, {"kind", "timestamp", "source", "tool_name", "tool_call_id",
                           status == "denied" ? "rejection_reason" : "error"});
  if (!result.call_id.empty()) return turns_.returned(result);
  result.rest.keep_value("tool_name", event["tool_name"]).keep_value("tool_call_id", event["tool_call_id"]);
  turns_.message("tool", result.parts, result.rest);
}

void OpenHandsSdkEvents::add_error(const json::Value& event) {
  json::Writer body;
  body.begin_object().member("error_type", name_or(event["code"].string_or(""), "error"));
  body.member("message", event["detail"].string_or(""));
  SourceRest rest;
  rest.keep(event, {"kind", "timestamp", "source", "code", event["detail"].is(json::Kind::string) ? "detail" : "code"});
  rest.write(body, turns_.known());
  turns_.add("error", "error.raised", std::move(body.end_object()).text());
  state_.outcome = "failure";
  state_.summary = event["code"].string_or("error");
}

void OpenHandsSdkEvents::add_condensation(const json::Value& event) {
  json::Writer body;
  body.begin_object().member("trigger", "condensation").key("summary").begin_array();
  const std::string summary = event["summary"].string_or("");
  if (!summary.empty()) body.raw(text_part_json(summary));
  body.end_array();
  SourceRest rest;
  rest.keep(event, {"kind", "timestamp", "source", "summary"}).write(body, turns_.known());
  turns_.add("compacted", "context.compacted", std::move(body.end_object()).text());
}

// The state of the conversation: its status, and the tokens and cost of the whole run so far.
void OpenHandsSdkEvents::add_state(const json::Value& event) {
  SourceRest rest;
  turns_.source("openhands", "state", rest.keep(event, {"kind", "timestamp"}));
  const std::string key = event["key"].string_or("");
  const json::Value value = event["value"];
  const json::Value status = key == "execution_status" ? value : value["execution_status"];
  const std::string word = status.string_or("");
  if (word == "finished") state_.outcome = "success";
  if (word == "error" || word == "stuck") state_.outcome = "failure";
  if (word == "running") state_.outcome.clear();
  if (state_.summary.empty() && !state_.outcome.empty()) state_.summary = "execution status " + word;
  const json::Value stats = key == "stats" ? value : value["stats"];
  std::int64_t input = 0, output = 0;
  double cost = 0;
  for (const json::Value metrics : stats["usage_to_metrics"]) {
    state_.take_metrics(metrics);
    const std::string usage = call_usage(metrics["accumulated_token_usage"], {});
    input += tokens_in(usage, "input_tokens");
    output += tokens_in(usage, "output_tokens");
    cost += metrics["accumulated_cost"].as_double().value_or(0);
  }
  if (input + output == 0) return;
  json::Writer usage;
  usage.begin_object().member("input_tokens", input).member("output_tokens", output);
  usage.key("cost").begin_object().member("amount", cost).member("currency", "USD").end_object().end_object();
  state_.run.end.usage = std::move(usage).text();
}

}  // namespace muniment::cli
