#include "adapters/import/formats/messages.hpp"

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

// A call has its name and arguments itself, or in its member "function".
json::Value call_part(const json::Value& tool, std::string_view name) {
  return tool["function"].is(json::Kind::object) ? tool["function"][name] : tool[name];
}

class MessageTrace {
 public:
  explicit MessageTrace(ImportedRun& run) : run_(run), turns_(run.events) {}

  void add(const json::Value& message) {
    turns_.begin_item(source_time(message["time"]));
    const std::string role = message["role"].string_or("");
    if (role == "assistant") return add_answer(message);
    if (role == "tool") return add_result(message);
    SourceRest rest;
    if (!message.is(json::Kind::object)) return turns_.message("user", {}, rest.keep_value("item", message));
    std::vector<std::string> parts = content_parts(message["content"], rest);
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

  void add_answer(const json::Value& message) {
    turns_.begin_step();
    const std::vector<json::Value> tools = tools_of(message);
    TurnAnswer answer{.model = message["model"].string_or("")};
    answer.parts = content_parts(message["content"], answer.rest);
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
      call.rest.keep(tool, {"name", "id", "arguments"});
    }
    pending_.emplace_back(call.source_id, turns_.call(call));
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

}  // namespace muniment::cli
