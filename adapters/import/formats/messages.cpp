#include "adapters/import/formats/formats.hpp"

#include <algorithm>
#include <string>

#include "adapters/import/formats/chat_turns.hpp"

namespace muniment::cli {
namespace {

bool is_message_role(std::string_view role) {
  return role == "system" || role == "developer" || role == "user" || role == "assistant" || role == "tool";
}

// The name of the member with the calls of a message: "tool", or "tool_calls" as in OpenAI's API.
std::string_view tools_name(const json::Value& message) { return message["tool"] ? "tool" : "tool_calls"; }

// The parts of a content that are of this type, and the JSON of the others. Anthropic's API has the calls and results
// of tools among the parts of a content; without any of them, the others are empty.
std::vector<json::Value> take_parts(const json::Value& content, std::string_view type, std::string& others) {
  std::vector<json::Value> taken;
  json::Writer left;
  left.begin_array();
  for (const json::Value part : content) {
    if (part["type"].string_or("") == type)
      taken.push_back(part);
    else
      write_value(left, part);
  }
  if (!taken.empty()) others = std::move(left.end_array()).text();
  return taken;
}

// The calls of a message: an object or a list of objects.
std::vector<json::Value> tools_of(const json::Value& message) {
  const json::Value tool = message[tools_name(message)];
  if (tool.is(json::Kind::object)) return {tool};
  std::vector<json::Value> tools;
  for (const json::Value one : tool) {
    if (one.is(json::Kind::object)) tools.push_back(one);
  }
  return tools;
}

// A call has its name and arguments itself, or in its member "function"; a part "tool_use" has an input.
json::Value call_part(const json::Value& tool, std::string_view name) {
  if (tool["function"].is(json::Kind::object)) return tool["function"][name];
  return name == "arguments" && tool["input"] ? tool["input"] : tool[name];
}

class MessageTrace {
 public:
  // `model`: of answers that do not name one; empty: unknown.
  explicit MessageTrace(ImportedRun& run, std::string model = {})
      : run_(run), turns_(run.events), model_(std::move(model)) {}

  void add_system(const json::Value& content) {
    turns_.begin_item();
    SourceRest rest;
    const std::vector<std::string> parts = content_parts(content, rest);
    turns_.message("system", parts, rest);
  }

  void add_source(const json::Value& request) {
    turns_.begin_item();
    SourceRest rest;
    for (const json::Value member : request) {
      const std::string key = member.key();
      if (key != "messages" && key != "system" && key != "model") rest.detail(key, member);
    }
    turns_.source("messages", "request", rest);
  }

  void add(const json::Value& message) {
    turns_.begin_item(source_time(message["time"]));
    const std::string role = message["role"].string_or("");
    if (role == "assistant") return add_answer(message);
    if (role == "tool") return add_result(message);
    SourceRest rest;
    if (!message.is(json::Kind::object)) return turns_.message("user", {}, rest.keep_value("item", message));
    std::string others;
    const std::vector<json::Value> results = take_parts(message["content"], "tool_result", others);
    for (const json::Value& result : results) add_tool_result(result);
    if (others == "[]") return;
    std::vector<std::string> parts = parts_of(message["content"], others, rest);
    if (role == "user" && run_.goal.empty()) run_.goal = content_text(message["content"]);
    keep_rest(rest, message, {"content", is_message_role(role) ? "role" : "content"});
    turns_.message(is_message_role(role) ? role : "user", parts, rest);
  }

  void end() { turns_.end_step(); }

 private:
  // The time is placed if it is one.
  static void keep_rest(SourceRest& rest, const json::Value& message, std::initializer_list<std::string_view> placed) {
    for (const json::Value member : message) {
      const std::string key = member.key();
      const bool is_placed =
          std::ranges::find(placed, key) != placed.end() || (key == "time" && !source_time(member).empty());
      if (!is_placed) rest.keep_value(key, member);
    }
  }

  // The parts of a content of which some were taken.
  static std::vector<std::string> parts_of(const json::Value& content, const std::string& others, SourceRest& rest) {
    if (others.empty()) return content_parts(content, rest);
    const auto left = json::parse(std::string_view(others));
    return left ? content_parts(left->root(), rest) : std::vector<std::string>();
  }

  void add_answer(const json::Value& message) {
    turns_.begin_step();
    std::vector<json::Value> tools = tools_of(message);
    std::string others;
    for (const json::Value& tool : take_parts(message["content"], "tool_use", others)) tools.push_back(tool);
    TurnAnswer answer{.model = message["model"].string_or(model_)};
    answer.parts = parts_of(message["content"], others, answer.rest);
    for (const json::Value tool : tools) {
      answer.parts.push_back(tool_call_part_json(tool["id"].string_or(""), call_part(tool, "name").string_or(""),
                                                 call_part(tool, "arguments")));
    }
    answer.usage = call_usage(message["usage"], message["cost"]);
    const bool has_usage = !answer.usage.empty();
    keep_rest(answer.rest, message,
              {"role", "content", tools.empty() ? "role" : tools_name(message), has_usage ? "usage" : "role",
               has_usage && message["cost"].as_double() ? "cost" : "role",
               message["model"].is(json::Kind::string) ? "model" : "role"});
    if (has_usage) keep_usage_rest(answer.rest, message["usage"]);
    const std::string call_id = turns_.answer(answer);
    for (const json::Value tool : tools) add_call(tool, call_id);
  }

  void add_call(const json::Value& tool, const std::string& requested_by) {
    TurnCall call{.name = call_part(tool, "name").string_or(""),
                  .source_id = tool["id"].string_or(""),
                  .requested_by = requested_by,
                  .arguments = arguments_json(call_part(tool, "arguments"))};
    if (tool["function"].is(json::Kind::object)) {
      call.rest.keep(tool, {"id", "type", "function"});
      call.rest.keep(tool["function"], {"name", "arguments"}, "function");
    } else {
      call.rest.keep(tool, {"name", "id", "arguments", tool["input"] ? "input" : "id", tool["input"] ? "type" : "id"});
    }
    pending_.emplace_back(call.source_id, turns_.call(call));
  }

  // A part "tool_result" of a user's message.
  void add_tool_result(const json::Value& part) {
    const std::string id = part["tool_use_id"].string_or("");
    const auto call = std::ranges::find(pending_, id, &std::pair<std::string, std::string>::first);
    SourceRest rest;
    std::vector<std::string> parts = content_parts(part["content"], rest);
    rest.keep(part, {"type", "tool_use_id", "content", "is_error"});
    if (call == pending_.end()) return turns_.message("tool", parts, rest);
    TurnReturn result{.call_id = call->second, .parts = std::move(parts), .rest = std::move(rest)};
    pending_.erase(call);
    if (const auto failed = part["is_error"].as_bool()) result.status = *failed ? "error" : "ok";
    turns_.returned(result);
  }

  // A result belongs to the open call with its id; without an id, to the oldest open call.
  void add_result(const json::Value& message) {
    const json::Value tool = message["tool"];
    const std::string id = tool["id"].string_or(message["tool_call_id"].string_or(""));
    const auto call = std::ranges::find_if(pending_, [&](const auto& one) { return id.empty() || one.first == id; });
    SourceRest rest;
    std::vector<std::string> parts = content_parts(message["content"], rest);
    if (call == pending_.end()) {
      keep_rest(rest, message, {"role", "content"});
      return turns_.message("tool", parts, rest);
    }
    TurnReturn result{.call_id = call->second, .parts = std::move(parts), .exit_code = tool["exit_code"].as_int()};
    pending_.erase(call);
    if (result.exit_code) result.status = *result.exit_code == 0 ? "ok" : "error";
    result.rest = std::move(rest);
    keep_rest(result.rest, message, {"role", "content", tool.is(json::Kind::object) ? "tool" : "role", "tool_call_id"});
    result.rest.keep(tool, {"id", "name", result.exit_code ? "exit_code" : "id"}, "tool");
    turns_.returned(result);
  }

  ImportedRun& run_;
  TurnWriter turns_;
  const std::string model_;
  std::vector<std::pair<std::string, std::string>> pending_;  // id in the source, call_id
};

}  // namespace

bool is_message(const json::Value& record) {
  return is_message_role(record["role"].string_or("")) && (record["content"] || record["tool"] || record["tool_calls"]);
}

Result<ImportedRun> translate_messages(const std::vector<json::Value>& records) {
  if (std::ranges::none_of(records, is_message)) {
    return Error(Errc::invalid_argument,
                 "no line is a message: expected an object with a role (system, developer, user, assistant or tool) "
                 "and content");
  }
  ImportedRun run{.agent = "messages"};
  MessageTrace trace(run);
  for (const json::Value record : records) trace.add(record);
  trace.end();
  run.end = {std::string(unknown_end), "the format has no outcome"};
  return run;
}

bool is_message_list(const json::Value& record) {
  bool any = false;
  for (const json::Value message : record["messages"]) {
    if (!is_message(message)) return false;
    any = true;
  }
  return any;
}

Result<ImportedRun> translate_message_list(const json::Value& record) {
  if (!is_message_list(record))
    return Error(Errc::invalid_argument, "this is not a list of messages: expected \"messages\" with role and content");
  ImportedRun run{.agent = "messages"};
  label_run(run, "model", record["model"]);
  MessageTrace trace(run, record["model"].string_or(""));
  trace.add_source(record);
  if (record["system"]) trace.add_system(record["system"]);
  for (const json::Value message : record["messages"]) trace.add(message);
  trace.end();
  run.end = {std::string(unknown_end), "the format has no outcome"};
  return run;
}

}  // namespace muniment::cli
