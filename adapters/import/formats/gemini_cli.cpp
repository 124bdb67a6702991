// Translates sessions of Gemini CLI: one JSON object with the messages of a conversation.
#include "adapters/import/formats/formats.hpp"

#include <fmt/format.h>

#include <string>

#include "adapters/import/formats/chat_turns.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

// Members of the session, of its messages and of their calls.
constexpr std::string_view gemini_members[] = {
    "agentId",       "description", "directories",
    "displayName",   "id",          "kind",
    "lastUpdated",   "projectHash", "renderOutputAsMarkdown",
    "resultDisplay", "sessionId",   "startTime",
    "status",        "subject",     "summary",
    "timestamp",     "tokens",      "tool",
    "total",
};

// Gemini counts thoughts and the results of tools beside the tokens of the answer and of the prompt.
std::string counted_usage(const json::Value& tokens) {
  const auto input = tokens["input"].as_int(), output = tokens["output"].as_int();
  if (!input && !output) return {};
  const std::int64_t thoughts = tokens["thoughts"].as_int().value_or(0);
  json::Writer usage;
  usage.begin_object();
  if (input) usage.member("input_tokens", *input + tokens["tool"].as_int().value_or(0));
  if (output) usage.member("output_tokens", *output + thoughts);
  if (const auto cached = tokens["cached"].as_int()) usage.member("cached_input_tokens", *cached);
  if (tokens["thoughts"].as_int()) usage.member("reasoning_tokens", thoughts);
  return std::move(usage.end_object()).text();
}

class GeminiTrace {
 public:
  explicit GeminiTrace(ImportedRun& run) : run_(run), turns_(run.events, gemini_members) {}

  void add(const json::Value& message) {
    turns_.begin_item(source_time(message["timestamp"]));
    const std::string type = message["type"].string_or("");
    if (type == "gemini") return add_answer(message);
    SourceRest rest;
    const std::vector<std::string> parts = content_parts(message["content"], rest);
    rest.keep(message, {"id", "timestamp", "content", type == "user" ? "type" : "id"});
    if (type == "user" && run_.goal.empty()) run_.goal = content_text(message["content"]);
    if (type != "error") return turns_.message(type == "user" ? "user" : "system", parts, rest);
    json::Writer body;
    body.begin_object().member("error_type", "error").member("message", content_text(message["content"]));
    rest.write(body, turns_.known());
    turns_.add("error", "error.raised", std::move(body.end_object()).text());
  }

  void add_source(const json::Value& session) {
    turns_.begin_item();
    SourceRest rest;
    turns_.source("gemini_cli", "session", rest.keep(session, {"messages", "sessionId"}));
  }

  void end() {
    turns_.begin_item();  // the end of the last step has no time
    turns_.end_step();
  }

 private:
  void add_answer(const json::Value& message) {
    turns_.begin_step();
    TurnAnswer answer{.model = message["model"].string_or("")};
    for (const json::Value thought : message["thoughts"]) {
      answer.rest.detail("thought", thought["timestamp"]);
      const std::string subject = thought["subject"].string_or("");
      answer.parts.push_back(
          reasoning_part_json((subject.empty() ? "" : subject + "\n") + thought["description"].string_or("")));
    }
    for (std::string& part : content_parts(message["content"], answer.rest)) answer.parts.push_back(std::move(part));
    for (const json::Value call : message["toolCalls"])
      answer.parts.push_back(tool_call_part_json(call["id"].string_or(""), call["name"].string_or(""), call["args"]));
    answer.usage = counted_usage(message["tokens"]);
    answer.rest.keep(message, {"id", "timestamp", "type", "content", "thoughts", "model", "toolCalls"});
    const std::string model_call = turns_.answer(answer);
    for (const json::Value call : message["toolCalls"]) add_call(call, model_call);
  }

  // A call is stored with its result.
  void add_call(const json::Value& call, const std::string& requested_by) {
    const std::string name = call["name"].string_or("");
    TurnCall called{.name = name,
                    .kind = name == "run_shell_command" ? "command" : "function",
                    .source_id = call["id"].string_or(""),
                    .requested_by = requested_by,
                    .arguments = arguments_json(call["args"])};
    called.rest.keep(call, {"id", "name", "args", "result"});
    TurnReturn result{.call_id = turns_.call(called), .occurred_at = source_time(call["timestamp"])};
    const std::string status = call["status"].string_or("");
    if (!call["result"] && status.empty()) return;
    if (status == "success") result.status = "ok";
    if (status == "error" || status == "cancelled") result.status = status;
    for (const json::Value part : call["result"]) {
      const json::Value response = part["functionResponse"]["response"];
      const json::Value text = response["output"] ? response["output"] : response["error"];
      if (text.is(json::Kind::string))
        result.parts.push_back(text_part_json(text.string_or("")));
      else
        result.rest.keep_value("result", part);
    }
    turns_.returned(result);
    const bool writes = name == "write_file" || name == "replace";
    const std::string path = call["args"]["file_path"].string_or("");
    if (writes && status == "success" && !path.empty())
      turns_.changed({.path = path,
                      .change = "modified",
                      .call_id = result.call_id,
                      .diff = call["resultDisplay"]["fileDiff"].string_or("")});
  }

  ImportedRun& run_;
  TurnWriter turns_;
};

}  // namespace

bool is_gemini_cli(const json::Value& record) {
  return record["sessionId"].is(json::Kind::string) && record["projectHash"] &&
         record["messages"].is(json::Kind::array);
}

Result<ImportedRun> translate_gemini_cli(const json::Value& record) {
  if (!is_gemini_cli(record))
    return Error(Errc::invalid_argument,
                 "this is not a session of Gemini CLI: it has no \"sessionId\" with \"messages\"");
  ImportedRun run{.agent = "gemini-cli", .external_id = record["sessionId"].string_or("")};
  run.end = {std::string(unknown_end), "the format has no outcome"};
  GeminiTrace trace(run);
  trace.add_source(record);
  for (const json::Value message : record["messages"]) trace.add(message);
  trace.end();
  return run;
}

}  // namespace muniment::cli
