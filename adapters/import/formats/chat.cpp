#include "adapters/import/formats/chat.hpp"

#include <algorithm>

namespace muniment::cli {
namespace {

bool is_role(std::string_view role) {
  return role == "system" || role == "developer" || role == "user" || role == "assistant" || role == "tool";
}

// Returns whether the calls contain only members that become part of the answer.
bool is_plain_call(const json::Value& call) {
  const bool is_flat = !call["function"];
  for (const json::Value member : call) {
    const std::string key = member.key();
    const bool known = key == "id" || (key == "index" && member.is(json::Kind::number)) || key == "function" ||
                       (key == "type" && member.string_or("") == "function") ||
                       (is_flat && (key == "name" || key == "arguments" || key == "requestor"));
    if (!known && !member.is(json::Kind::null)) return false;
  }
  for (const json::Value member : call["function"]) {
    if (member.key() != "name" && member.key() != "arguments") return false;
  }
  return is_flat ? call["name"].is(json::Kind::string) : call["function"].is(json::Kind::object);
}

bool are_plain_calls(const json::Value& calls) {
  if (!calls.is(json::Kind::array)) return !calls.present() || calls.is(json::Kind::null);
  for (const json::Value call : calls) {
    if (!is_plain_call(call)) return false;
  }
  return true;
}

// The function of a call, or the call itself if its name and arguments are members of its own.
json::Value function_of(const json::Value& call) { return call["function"] ? call["function"] : call; }

// The members of a message that do not become `x_source`: those that the caller has placed, and `time` if it is one.
SourceRest rest_of(const json::Value& message, SourceRest rest, std::initializer_list<std::string_view> placed) {
  for (const json::Value member : message) {
    const std::string key = member.key();
    if (key == "content" || std::find(placed.begin(), placed.end(), key) != placed.end()) continue;
    if (key == "timestamp" && !source_time(member).empty()) continue;
    rest.keep_value(key, member);
  }
  return rest;
}

}  // namespace

void ChatTrace::end() { turns_.end_step(); }

void ChatTrace::add(const json::Value& message) {
  const std::string role = message["role"].string_or("");
  if (role == "tool" && message["tool_messages"].is(json::Kind::array)) {
    for (const json::Value one : message["tool_messages"]) add(one);
    return;
  }
  turns_.begin_item(source_time(message["timestamp"]));
  if (!message.is(json::Kind::object)) {
    SourceRest rest;
    return turns_.message("user", {}, rest.keep_value("item", message));
  }
  if (role == "assistant") return add_answer(message);
  if (role == "tool" || role == "function") {
    if (const std::string call = take_pending(message); !call.empty()) return add_return(message, call);
  }
  add_message(message, role);
}

void ChatTrace::add_text(std::string_view role, std::string_view text) {
  turns_.begin_item();
  if (role != "assistant") return turns_.message(is_role(role) ? role : "user", {text_part_json(text)}, {});
  turns_.begin_step();
  turns_.answer({.model = model_, .parts = {text_part_json(text)}});
}

void ChatTrace::add_answer(const json::Value& message) {
  turns_.begin_step();
  TurnAnswer answer;
  answer.model = message["model"].string_or(message["raw_data"]["model"].string_or(model_));
  answer.parts = content_parts(message["content"], answer.rest);
  const std::string reasoning = message["reasoning_content"].string_or("");
  if (!reasoning.empty()) answer.parts.insert(answer.parts.begin(), reasoning_part_json(reasoning));
  for (const json::Value call : message["tool_calls"]) {
    const json::Value function = function_of(call);
    answer.parts.push_back(
        tool_call_part_json(call["id"].string_or(""), function["name"].string_or(""), function["arguments"]));
  }
  answer.usage = call_usage(message["usage"], message["cost"]);
  answer.duration_us = microseconds_of(message["generation_time_seconds"]);
  const bool has_usage = !answer.usage.empty();
  const bool has_cost = message["cost"].as_double().has_value();
  if (has_cost && !has_usage) answer.rest.detail("cost", message["cost"]);
  answer.rest = rest_of(
      message, std::move(answer.rest),
      {"role", are_plain_calls(message["tool_calls"]) ? "tool_calls" : "role", has_usage ? "usage" : "role",
       has_cost ? "cost" : "role", message["model"].is(json::Kind::string) ? "model" : "role",
       reasoning.empty() ? "role" : "reasoning_content", answer.duration_us ? "generation_time_seconds" : "role"});
  if (has_usage) keep_usage_rest(answer.rest, message["usage"]);
  add_calls(message, turns_.answer(answer));
}

void ChatTrace::add_calls(const json::Value& message, const std::string& requested_by) {
  for (const json::Value call : message["tool_calls"]) {
    SourceRest rest;
    if (call["requestor"].string_or("assistant") != "assistant") rest.keep_value("requestor", call["requestor"]);
    add_call(function_of(call), call["id"].string_or(""), requested_by, std::move(rest));
  }
  if (const json::Value call = message["function_call"]; call.is(json::Kind::object))
    add_call(call, {}, requested_by, {});
}

void ChatTrace::add_call(const json::Value& function, const std::string& source_id, const std::string& requested_by,
                         SourceRest rest) {
  pending_.push_back({source_id, turns_.call({.name = function["name"].string_or(""),
                                              .source_id = source_id,
                                              .requested_by = requested_by,
                                              .arguments = arguments_json(function["arguments"]),
                                              .rest = std::move(rest)})});
}

// Returns the call that a tool message answers: the oldest open call with its id, or the oldest of all if it has no id.
// Empty: none.
std::string ChatTrace::take_pending(const json::Value& message) {
  const std::string id = message["tool_call_id"].string_or(message["id"].string_or(""));
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Call& call) { return id.empty() || call.source_id == id; });
  if (found == pending_.end()) return {};
  std::string call_id = found->call_id;
  pending_.erase(found);
  return call_id;
}

void ChatTrace::add_return(const json::Value& message, const std::string& call_id) {
  TurnReturn result{.call_id = call_id};
  result.parts = content_parts(message["content"], result.rest);
  const std::string text = content_text(message["content"]);
  const auto is_error = message["error"].as_bool();
  if (!text.empty()) {
    const ToolOutcome outcome = judge_(text);
    result.status = outcome.status;
    result.exit_code = outcome.exit_code;
  }
  if (is_error) result.status = *is_error ? "error" : "ok";
  const bool is_placed_id = message["id"].string_or("") == call_id;
  result.rest = rest_of(message, std::move(result.rest),
                        {"role", is_error ? "error" : "role", is_placed_id ? "id" : "role",
                         message["tool_call_id"].is(json::Kind::string) ? "tool_call_id" : "role"});
  turns_.returned(result);
}

void ChatTrace::add_message(const json::Value& message, const std::string& role) {
  SourceRest rest;
  const std::vector<std::string> parts = content_parts(message["content"], rest);
  const bool has_calls = role == "user" && message["tool_calls"].is(json::Kind::array);
  const bool placed_calls = has_calls && are_plain_calls(message["tool_calls"]);
  // The tokens of a simulated user are not usage of the agent.
  const bool has_usage = !call_usage(message["usage"], {}).empty(), has_cost = message["cost"].as_double().has_value();
  if (has_usage) rest.detail("usage", message["usage"]);
  if (has_cost) rest.detail("cost", message["cost"]);
  rest = rest_of(message, std::move(rest),
                 {is_role(role) ? "role" : "content", placed_calls ? "tool_calls" : "content",
                  has_usage ? "usage" : "content", has_cost ? "cost" : "content"});
  turns_.message(is_role(role) ? role : "user", parts, rest);
  if (has_calls) add_calls(message, {});
}

}  // namespace muniment::cli
