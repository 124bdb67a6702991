#include "adapters/import/formats/openhands_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "adapters/import/formats/formats.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view known_members[] = {
    // members of the server's events
    "accumulated_cost",
    "accumulated_token_usage",
    "action",
    "active_page_index",
    "additional_agent_instructions",
    "agent",
    "agent_class",
    "agent_state",
    "annotations",
    "arguments",
    "args",
    "audio",
    "axtree_object",
    "blocking",
    "cause",
    "code",
    "command",
    "command_id",
    "confirmation_state",
    "content",
    "conversation_instructions",
    "costs",
    "created",
    "custom_secrets_descriptions",
    "cwd",
    "date",
    "diff",
    "dom_object",
    "end",
    "error",
    "error_id",
    "exit_code",
    "extra_element_properties",
    "extras",
    "file_path",
    "file_urls",
    "filter_visible_only",
    "focused_element_bid",
    "forgotten_event_ids",
    "forgotten_events_end_id",
    "forgotten_events_start_id",
    "formatted_output_and_error",
    "function_call",
    "goal_image_urls",
    "hidden",
    "id",
    "image_urls",
    "images",
    "impl_source",
    "include_extra",
    "index",
    "inputs",
    "is_input",
    "is_static",
    "last_browser_action",
    "last_browser_action_error",
    "logprobs",
    "max_budget_per_task",
    "message",
    "metadata",
    "microagent_knowledge",
    "name",
    "new_content",
    "object",
    "observation",
    "old_content",
    "open_pages_urls",
    "openhands_version",
    "outputs",
    "path",
    "prev_exist",
    "provider_specific_fields",
    "reason",
    "recall_type",
    "refusal",
    "repo_directory",
    "repo_instructions",
    "repo_name",
    "response_latencies",
    "runtime_hosts",
    "screenshot",
    "screenshot_path",
    "security_risk",
    "service_tier",
    "set_of_marks",
    "source",
    "start",
    "success",
    "summary_offset",
    "system_fingerprint",
    "task_completed",
    "task_list",
    "thinking_blocks",
    "thought",
    "timeout",
    "token_usages",
    "tool_call_metadata",
    "tools",
    "trigger_by_action",
    "url",
    "wait_for_response",
    "working_dir",
    // of the SDK
    "action_id",
    "activated_skills",
    "cache_prompt",
    "classification",
    "commit",
    "critic_result",
    "dynamic_context",
    "encrypted_content",
    "extended_content",
    "file_text",
    "fuzz",
    "full_output_save_dir",
    "insert_line",
    "is_new_file",
    "key",
    "kind",
    "llm_response_id",
    "new_str",
    "old_str",
    "origin",
    "parent_id",
    "prefix",
    "reasoning_content",
    "rejection_source",
    "replacements_made",
    "reset",
    "responses_item_id",
    "sender",
    "signature",
    "status",
    "suffix",
    "summary",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "value",
    "view_range",
    // members of an evaluation's events
    "attempt",
    "instance",
    "instance_id",
    "instruction",
    "metrics",
    "report",
    "resolved",
    "test_result",
};

// Events about the program around the agent.
constexpr std::string_view inner_actions[] = {
    "recall",     "change_agent_state",   "null",         "pause", "resume", "stop", "start",
    "initialize", "condensation_request", "loop_recovery"};
constexpr std::string_view inner_observations[] = {"agent_state_changed", "null", "recall", "condense",
                                                   "loop_detection"};

bool is_one_of(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// Keeps the members of an event that belong to no event of the log. `texts`: texts that have a place already.
void keep_event(SourceRest& rest, const json::Value& event, std::initializer_list<std::string_view> texts) {
  rest.keep(event, {"id", "timestamp", "source", "message", "cause", "action", "args", "observation", "content",
                    "extras", "tool_call_metadata", "llm_metrics", "success"});
  const std::string message = event["message"].string_or("");
  const bool repeats = std::any_of(texts.begin(), texts.end(),
                                   [&](std::string_view text) { return text.find(message) != std::string_view::npos; });
  if (!repeats) rest.keep_value("message", event["message"]);
  if (event["source"].string_or("agent") != "agent") rest.keep_value("source", event["source"]);
}

// Ids of events are numbers; those of tool calls are texts.
constexpr std::string_view no_id = "#";
std::string event_key(const json::Value& id) { return std::string(no_id) + label_word(id); }

std::optional<std::int64_t> exit_code_of(const json::Value& extras) {
  const auto code = extras["metadata"]["exit_code"].as_int();
  return code ? code : extras["exit_code"].as_int();
}

// -1: the command still runs.
std::string_view command_status(std::int64_t exit_code, const std::string& text) {
  if (exit_code == 0) return "ok";
  if (exit_code != -1) return "error";
  const bool waited = text.find("[The command timed out after ") != std::string::npos ||
                      text.find("[The command has no new output after ") != std::string::npos;
  return waited ? "timeout" : unknown_end;
}

}  // namespace

const KnownMembers openhands_members = known_members;

OpenHandsState::Call OpenHandsState::take(std::initializer_list<std::string> ids) {
  for (const std::string& id : ids) {
    const auto found = calls.find(id);
    if (found == calls.end()) continue;
    Call call = found->second;
    std::erase_if(calls, [&](const auto& entry) { return entry.second.call_id == call.call_id; });
    return call;
  }
  return {};
}

void OpenHandsState::remember(std::initializer_list<std::string> ids, const Call& call) {
  for (const std::string& id : ids) {
    if (!id.empty() && id != no_id) calls[id] = call;
  }
}

void OpenHandsState::count(const std::string& usage) {
  input_tokens += tokens_in(usage, "input_tokens");
  output_tokens += tokens_in(usage, "output_tokens");
}

void OpenHandsState::take_metrics(const json::Value& metrics) {
  for (const json::Value usage : metrics["token_usages"]) {
    const std::string id = usage["response_id"].string_or("");
    if (!id.empty()) usage_of[id] = call_usage(usage, {});
  }
  for (const json::Value latency : metrics["response_latencies"]) {
    const auto duration = microseconds_of(latency["latency"]);
    if (const std::string id = latency["response_id"].string_or(""); !id.empty() && duration)
      duration_of[id] = *duration;
  }
}

void OpenHandsState::set_usage(const json::Value& usage, const json::Value& cost) {
  std::string total = call_usage(usage, cost);
  const bool is_empty = total.empty() || tokens_in(total, "input_tokens") + tokens_in(total, "output_tokens") == 0;
  if (is_empty && input_tokens + output_tokens > 0 && cost.as_double().value_or(-1) >= 0) {
    json::Writer out;
    out.begin_object().member("input_tokens", input_tokens).member("output_tokens", output_tokens);
    out.key("cost").begin_object().raw_member("amount", cost.source()).member("currency", "USD").end_object();
    total = std::move(out.end_object()).text();
  }
  if (!total.empty()) run.end.usage = std::move(total);
}

void OpenHandsEvents::add(const json::Value& event) {
  turns_.begin_item(source_time(event["timestamp"]));
  state_.take_metrics(event["llm_metrics"]);
  if (const auto action = event["action"].as_string()) return add_action(event, *action);
  if (const auto observation = event["observation"].as_string()) return add_observation(event, *observation);
  SourceRest rest;
  turns_.source("openhands", "event", rest.keep_value("event", event));
}

void OpenHandsEvents::add_action(const json::Value& event, const std::string& action) {
  const json::Value arguments = event["args"];
  if (action == "system" || action == "message") return add_message(event);
  if (action == "condensation") return add_condensation(event);
  if (is_one_of(action, inner_actions)) {
    SourceRest rest;
    rest.keep(event, {"id", "timestamp", "llm_metrics"});
    return turns_.source("openhands", action, rest);
  }
  add_call(event, action);
  take_end(action, arguments);
}

void OpenHandsEvents::add_message(const json::Value& event) {
  const json::Value arguments = event["args"];
  SourceRest rest;
  std::vector<std::string> parts = content_parts(arguments["content"], rest);
  const std::string text = content_text(arguments["content"]);
  keep_event(rest, event, {text});
  const bool is_system = event["action"].string_or("") == "system";
  const bool is_agent = event["source"].string_or("") == "agent" && !is_system;
  rest.keep(arguments, {"content"}, "args");
  if (!is_agent) {
    if (!is_system && state_.run.goal.empty()) state_.run.goal = task_heading(text);
    return turns_.message(is_system ? "system" : "user", parts, rest);
  }
  const json::Value response = event["tool_call_metadata"]["model_response"];
  turns_.begin_step();
  TurnAnswer answer{.model = response["model"].string_or(state_.model), .parts = std::move(parts)};
  answer.usage = call_usage(response["usage"], {});
  state_.count(answer.usage);
  answer.rest = std::move(rest);
  answer.rest.keep_value("tool_call_metadata", event["tool_call_metadata"]);
  turns_.answer(answer);
}

// An answer of the model asks for one or several calls, each of which is an action with the same response. `thought`:
// the text of an answer whose response is not there.
void OpenHandsEvents::add_answer(const json::Value& response, const std::string& thought) {
  turns_.begin_step();
  TurnAnswer answer{.model = response["model"].string_or(state_.model)};
  const json::Value choices = response["choices"];
  const bool has_choice = choices.is(json::Kind::array) && choices.size() > 0;
  const json::Value choice = has_choice ? *choices.begin() : json::Value();
  const json::Value message = choice["message"];
  const std::string reasoning = message["reasoning_content"].string_or("");
  if (!reasoning.empty()) answer.parts.push_back(reasoning_part_json(reasoning));
  for (std::string& part : content_parts(message["content"], answer.rest)) answer.parts.push_back(std::move(part));
  if (!thought.empty()) answer.parts.push_back(text_part_json(thought));
  for (const json::Value call : message["tool_calls"]) {
    const json::Value function = call["function"];
    answer.parts.push_back(
        tool_call_part_json(call["id"].string_or(""), function["name"].string_or(""), function["arguments"]));
  }
  if (auto reason = choice["finish_reason"].as_string()) answer.finish_reasons.push_back(std::move(*reason));
  const std::string id = response["id"].string_or("");
  answer.usage = call_usage(response["usage"], {});
  const bool has_usage = !answer.usage.empty();
  if (!has_usage && state_.usage_of.contains(id)) answer.usage = state_.usage_of[id];
  if (const auto found = state_.duration_of.find(id); found != state_.duration_of.end())
    answer.duration_us = found->second;
  state_.count(answer.usage);
  answer.rest.keep(response, {"model", "choices", has_usage ? "usage" : "model"}, "model_response");
  answer.rest.keep(choice, {"message", "finish_reason"}, "choice");
  answer.rest.keep(message, {"role", "content", "tool_calls", "reasoning_content"}, "message");
  for (bool is_first = true; const json::Value other : choices) {
    if (!is_first) answer.rest.keep_value("choice", other);
    is_first = false;
  }
  if (has_usage) keep_usage_rest(answer.rest, response["usage"]);
  state_.model_call = turns_.answer(answer);
  state_.response_id = id;
  if (!id.empty()) state_.response_ids.insert(id);
}

// Keeps the model's response of an event whose action is not in the list.
void OpenHandsEvents::keep_metadata(SourceRest& rest, const json::Value& event) const {
  const json::Value metadata = event["tool_call_metadata"];
  const std::string id = metadata["model_response"]["id"].string_or("");
  if (!state_.response_ids.contains(id)) rest.keep_value("tool_call_metadata", metadata);
}

void OpenHandsEvents::add_call(const json::Value& event, const std::string& action) {
  const json::Value metadata = event["tool_call_metadata"], arguments = event["args"];
  const json::Value response = metadata["model_response"];
  const std::string id = response["id"].string_or("");
  const bool by_user = event["source"].string_or("") == "user";
  const bool is_same_answer = !id.empty() && id == state_.response_id;
  const std::string thought = arguments["thought"].string_or("");
  std::string said;
  for (const json::Value choice : response["choices"]) said += content_text(choice["message"]["content"]);
  const bool is_said = said.find(thought) != std::string::npos;
  const bool says_it = !by_user && !is_same_answer;
  if (says_it) add_answer(response, is_said ? std::string() : thought);
  TurnCall call{.name = metadata["function_name"].string_or(action)};
  call.kind = action == "run" ? "command" : action == "call_tool_mcp" ? "mcp" : "function";
  call.source_id = metadata["tool_call_id"].string_or("");
  if (!by_user) call.requested_by = state_.model_call;
  json::Writer written;
  written.begin_object();
  for (const json::Value member : arguments) {
    const std::string key = member.key();
    if (member.is(json::Kind::null) || (key == "thought" && (is_said || says_it))) continue;
    write_value(written.key(key), member);
  }
  call.arguments = std::move(written.end_object()).text();
  if (!arguments.is(json::Kind::object)) call.arguments = arguments_json(arguments);
  keep_event(call.rest, event, {thought, said, arguments["command"].string_or("")});
  if (call.name != action) call.rest.keep_value("action", event["action"]);
  const std::string call_id = turns_.call(call);
  state_.remember({event_key(event["id"]), call.source_id}, {call_id, action, arguments["command"].string_or("")});
}

void OpenHandsEvents::take_end(const std::string& action, const json::Value& arguments) {
  if (action == "reject") {
    state_.outcome = "failure";
    state_.summary = arguments["outputs"]["reason"].string_or("the agent rejected the task");
  }
  if (action != "finish") return;
  const json::Value completed = arguments["task_completed"];
  const std::string word =
      completed.is(json::Kind::boolean) ? std::string(completed.source()) : completed.string_or("true");
  state_.outcome = word == "true" ? "success" : word == "false" ? "failure" : unknown_end;
  state_.summary = arguments["final_thought"].string_or("");
  if (state_.summary.empty()) state_.summary = arguments["thought"].string_or("");
  if (state_.summary.empty()) state_.summary = "the agent finished";
}

void OpenHandsEvents::add_observation(const json::Value& event, const std::string& observation) {
  if (is_one_of(observation, inner_observations)) {
    SourceRest rest;
    rest.keep(event, {"id", "timestamp", "llm_metrics"});
    const std::string now = event["extras"]["agent_state"].string_or("");
    if (now == "finished" && state_.outcome.empty()) state_.outcome = "success";
    if (now == "error" || now == "rejected") state_.outcome = "failure";
    if (!now.empty() && state_.summary.empty() && !state_.outcome.empty()) state_.summary = "agent state " + now;
    return turns_.source("openhands", observation, rest);
  }
  const auto call = state_.take({event_key(event["cause"]), event["tool_call_metadata"]["tool_call_id"].string_or("")});
  if (!call.call_id.empty()) return add_return(event, observation, call);
  if (observation == "error") return add_error(event);
  SourceRest rest;
  const std::vector<std::string> parts = content_parts(event["content"], rest);
  keep_event(rest, event, {content_text(event["content"])});
  keep_metadata(rest, event);
  rest.keep(event["extras"], {}, "extras").keep_value("observation", event["observation"]);
  turns_.message("tool", parts, rest);
}

void OpenHandsEvents::add_return(const json::Value& event, const std::string& observation,
                                 const OpenHandsState::Call& call) {
  const json::Value extras = event["extras"];
  const std::string text = content_text(event["content"]);
  TurnReturn result{.call_id = call.call_id, .status = "ok"};
  result.parts = content_parts(event["content"], result.rest);
  const auto exit_code = exit_code_of(extras);
  if (exit_code) {
    result.status = command_status(*exit_code, text + extras["metadata"]["suffix"].string_or(""));
    if (*exit_code != -1) result.exit_code = exit_code;
  } else if (const auto success = event["success"].as_bool()) {
    result.status = *success ? "ok" : "error";
  }
  if (observation == "delegate") result.status = unknown_end;
  const bool says_error =
      text.starts_with("ERROR:") && (observation == "edit" || observation == "read" || observation == "write");
  if (observation == "error" || says_error || extras["error"].as_bool().value_or(false)) result.status = "error";
  if (observation == "user_rejected") result.status = "denied";
  keep_event(result.rest, event, {text});
  if (observation != call.action) result.rest.detail("observation", event["observation"]);
  keep_metadata(result.rest, event);
  result.rest.keep(extras, {}, "extras");
  turns_.returned(result);
  if (result.status == "ok") add_change(event, call);
}

void OpenHandsEvents::add_change(const json::Value& event, const OpenHandsState::Call& call) {
  const std::string observation = event["observation"].string_or("");
  const json::Value extras = event["extras"];
  const std::string path = extras["path"].string_or("");
  if ((observation != "edit" && observation != "write") || path.empty()) return;
  // The editor of the agent's tools leaves prev_exist false for every file.
  const bool by_tool = !call.command.empty();
  const bool is_new = by_tool ? call.command == "create" : extras["prev_exist"].as_bool() == std::optional(false);
  const auto before = extras["old_content"].as_string(), after = extras["new_content"].as_string();
  if (!is_new && before && after && *before == *after) return;
  turns_.changed({.path = path,
                  .change = is_new ? "created" : "modified",
                  .call_id = call.call_id,
                  .diff = extras["diff"].string_or("")});
}

void OpenHandsEvents::add_error(const json::Value& event) {
  json::Writer body;
  const std::string id = event["extras"]["error_id"].string_or("");
  body.begin_object().member("error_type", name_or(id, "error")).member("message", content_text(event["content"]));
  SourceRest rest;
  keep_event(rest, event, {content_text(event["content"])});
  rest.keep(event["extras"], {id.empty() ? "" : "error_id"}, "extras").write(body, turns_.known());
  turns_.add("error", "error.raised", std::move(body.end_object()).text());
}

void OpenHandsEvents::add_condensation(const json::Value& event) {
  json::Writer body;
  body.begin_object().member("trigger", "condensation").key("summary").begin_array();
  const std::string summary = event["args"]["summary"].string_or("");
  if (!summary.empty()) body.raw(text_part_json(summary));
  body.end_array();
  SourceRest rest;
  keep_event(rest, event, {summary});
  rest.keep(event["args"], {"summary"}, "args").write(body, turns_.known());
  turns_.add("compacted", "context.compacted", std::move(body.end_object()).text());
}

bool is_openhands_event(const json::Value& record) {
  if (!record.is(json::Kind::object)) return false;
  const bool is_of_run = record["source"].is(json::Kind::string) || record["timestamp"].is(json::Kind::string);
  if (record["kind"].is(json::Kind::string) && is_of_run && record["id"].is(json::Kind::string)) {
    const std::string kind = record["kind"].string_or("");
    return kind.ends_with("Event") || kind.starts_with("Condensation") || kind == "UserRejectObservation";
  }
  const bool is_action = record["action"].is(json::Kind::string) && (record["args"] || record["source"]);
  const bool is_observation = record["observation"].is(json::Kind::string) && (record["extras"] || record["source"]);
  return is_of_run && (is_action || is_observation) && !record["response"];
}

}  // namespace muniment::cli
