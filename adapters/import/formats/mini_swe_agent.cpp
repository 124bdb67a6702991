#include "adapters/import/formats/formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "adapters/import/formats/chat_turns.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view mini_agent = "mini-swe-agent";

// Members of the file, of its messages and of the responses of models.
constexpr std::string_view mini_members[] = {
    "actions",
    "annotations",
    "api_calls",
    "audio",
    "background",
    "choices",
    "config",
    "cost",
    "created",
    "created_at",
    "error",
    "exception",
    "exception_info",
    "exception_type",
    "exit_status",
    "function_call",
    "id",
    "images",
    "incomplete_details",
    "index",
    "info",
    "instance_cost",
    "instance_id",
    "instructions",
    "interrupt_type",
    "max_output_tokens",
    "metadata",
    "mini_version",
    "model_response",
    "model_stats",
    "n_actions",
    "object",
    "output",
    "parallel_tool_calls",
    "provider",
    "provider_specific_fields",
    "raw_output",
    "reasoning",
    "reasoning_details",
    "refusal",
    "response",
    "returncode",
    "role",
    "service_tier",
    "status",
    "store",
    "submission",
    "system_fingerprint",
    "temperature",
    "text",
    "thinking_blocks",
    "tool_choice",
    "tools",
    "top_p",
    "traceback",
    "trajectory_format",
    "truncation",
    "user",
};

// Returns the command in the only code block of bash in an answer of version 1; empty if there is not exactly one.
std::string command_in(std::string_view text) {
  std::string found;
  for (const std::string_view opening : {"```mswea_bash_command\n", "```bash\n"}) {
    std::size_t blocks = 0;
    for (std::size_t at = text.find(opening); at != std::string_view::npos; at = text.find(opening, at)) {
      at += opening.size();
      const std::size_t end = text.find("\n```", at);
      if (end == std::string_view::npos) break;
      found = text.substr(at, end - at);
      ++blocks;
      at = end;
    }
    if (blocks == 1) return found;
    if (blocks > 1) return {};
  }
  return {};
}

// Returns the exit code in "<returncode>0</returncode>", the beginning of a result of version 1.
std::optional<std::int64_t> returncode_in(std::string_view text) {
  constexpr std::string_view opening = "<returncode>";
  const std::size_t at = text.find(opening);
  if (at == std::string_view::npos || text.find_first_not_of(" \t\r\n") < at) return std::nullopt;
  const std::string_view rest = text.substr(at + opening.size());
  return parse_decimal(rest.substr(0, rest.find("</returncode>")));
}

// Returns the task in a prompt: the text after "Please solve this issue: ", otherwise its heading.
std::string goal_in(std::string text) {
  constexpr std::string_view opening = "Please solve this issue: ";
  if (!text.starts_with(opening)) return task_heading(text);
  text.erase(0, opening.size());
  constexpr std::string_view closing = "\n\nYou can execute bash commands";
  return text.substr(0, text.find(closing));
}

class MiniTrace {
 public:
  MiniTrace(std::vector<ImportedEvent>& events, std::string model)
      : turns_(events, mini_members), model_(std::move(model)) {}

  void add(const json::Value& message) {
    const json::Value extra = message["extra"];
    turns_.begin_item(source_time(extra["timestamp"] ? extra["timestamp"] : message["timestamp"]));
    const std::string role = message["role"].string_or("");
    const std::string type = message["type"].string_or("");
    const bool is_response = message["object"].string_or("") == "response";
    if (role == "assistant" || is_response) return add_answer(message, is_response);
    if (role == "exit") return add_exit(message);
    const bool is_result = role == "tool" || type == "function_call_output" || extra["returncode"] ||
                           extra["raw_output"] || returncode_in(content_text(message["content"])) ||
                           is_last_output(message);
    if (is_result && !pending_.empty()) return add_result(message);
    add_message(message, role);
  }

  // The submission is the output of the last command in version 1, without an exit code.
  void expect_submission(std::string submission) { submission_ = std::move(submission); }

  void end() { turns_.end_step(); }
  std::int64_t input_tokens() const { return input_tokens_; }
  std::int64_t output_tokens() const { return output_tokens_; }
  bool has_costs() const { return has_costs_; }
  TurnWriter& turns() { return turns_; }

 private:
  struct Call {
    std::string source_id;
    std::string call_id;
  };

  bool is_last_output(const json::Value& message) const {
    return !submission_.empty() && message["role"].string_or("") == "user" &&
           message["content"].string_or("") == submission_;
  }

  void add_answer(const json::Value& message, bool is_response) {
    turns_.begin_step();
    const json::Value extra = message["extra"];
    const json::Value response = is_response ? message : extra["response"];
    TurnAnswer answer;
    answer.model = response["model"].string_or(model_);
    StringSet known;
    if (is_response) {
      add_output(answer, message["output"], known);
    } else {
      answer.parts = content_parts(message["content"], answer.rest);
      add_reasoning(answer, message);
      for (const json::Value member : message) {
        if (member.key() != "extra") known.add(member);
      }
      for (const json::Value call : message["tool_calls"]) {
        const json::Value function = call["function"];
        answer.parts.push_back(
            tool_call_part_json(call["id"].string_or(""), function["name"].string_or(""), function["arguments"]));
      }
      answer.rest.keep(message, {"role", "content", "extra", "timestamp", "reasoning_content", "tool_calls"});
      if (!known_calls(message)) answer.rest.keep_value("tool_calls", message["tool_calls"]);
    }
    for (const json::Value choice : response["choices"]) {
      if (const auto reason = choice["finish_reason"].as_string()) {
        answer.finish_reasons.push_back(*reason);
        known.add(*reason);
      }
    }
    count(answer, response, extra);
    keep_response(answer, response, is_response, known);
    answer.rest.keep(extra, {"response", "actions", "timestamp", answer.usage.empty() ? "response" : "cost"}, "extra");
    add_commands(message, turns_.answer(answer));
  }

  void count(TurnAnswer& answer, const json::Value& response, const json::Value& extra) {
    answer.usage = call_usage(response["usage"], extra["cost"]);
    input_tokens_ += tokens_in(answer.usage, "input_tokens");
    output_tokens_ += tokens_in(answer.usage, "output_tokens");
    has_costs_ = has_costs_ || (!answer.usage.empty() && extra["cost"].as_double());
  }

  // Returns whether every call names a function; otherwise the source's tool_calls are kept.
  static bool known_calls(const json::Value& message) {
    for (const json::Value call : message["tool_calls"]) {
      if (!call["function"]["name"].is(json::Kind::string)) return false;
    }
    return true;
  }

  static void add_reasoning(TurnAnswer& answer, const json::Value& message) {
    const std::string reasoning = message["reasoning_content"].string_or("");
    if (!reasoning.empty()) answer.parts.insert(answer.parts.begin(), reasoning_part_json(reasoning));
  }

  // Items of the Responses API: messages, function calls and reasoning.
  static void add_output(TurnAnswer& answer, const json::Value& output, StringSet& known) {
    for (const json::Value item : output) {
      const std::string type = item["type"].string_or("");
      if (type == "function_call") {
        answer.parts.push_back(tool_call_part_json(item["call_id"].string_or(item["id"].string_or("")),
                                                   item["name"].string_or(""), item["arguments"]));
        answer.rest.keep(item, {"type", "call_id", "name", "arguments"}, "function_call");
        continue;
      }
      if (type == "message") {
        for (std::string& part : content_parts(item["content"], answer.rest)) answer.parts.push_back(std::move(part));
        answer.rest.keep(item, {"type", "content", "role"}, "message");
        continue;
      }
      for (const json::Value part : item["summary"]) {
        if (const auto text = part["text"].as_string()) answer.parts.push_back(reasoning_part_json(*text));
      }
      answer.rest.keep_value("output", item);
    }
    known.add(output);
  }

  // The response repeats the message; only members that the message lacks are kept.
  static void keep_response(TurnAnswer& answer, const json::Value& response, bool is_response, const StringSet& known) {
    if (!response.is(json::Kind::object)) {
      answer.rest.keep_value("response", response);
      return;
    }
    const bool repeats = known.has_all(response["choices"]);
    const bool has_usage = !answer.usage.empty();
    answer.rest.keep(response,
                     {"model", "output", "extra", repeats ? "choices" : "model", has_usage ? "usage" : "model"},
                     is_response ? "" : "response");
    if (has_usage) keep_usage_rest(answer.rest, response["usage"]);
  }

  // The commands that were run: those in `extra`, or those that the answer asks for.
  void add_commands(const json::Value& message, const std::string& requested_by) {
    pending_.clear();
    const json::Value actions = message["extra"]["actions"];
    for (const json::Value action : actions) {
      add_command(action["command"].string_or(action.string_or("")), action["tool_call_id"].string_or(""),
                  requested_by);
    }
    if (actions.size() > 0) return;
    for (const json::Value call : message["tool_calls"]) {
      const json::Value function = call["function"];
      add_call(function["name"].string_or(""), arguments_json(function["arguments"]), call["id"].string_or(""),
               requested_by);
    }
    for (const json::Value item : message["output"]) {
      if (item["type"].string_or("") != "function_call") continue;
      add_call(item["name"].string_or(""), arguments_json(item["arguments"]),
               item["call_id"].string_or(item["id"].string_or("")), requested_by);
    }
    if (!pending_.empty()) return;
    const std::string command = command_in(content_text(message["content"]));
    if (!command.empty()) add_command(command, {}, requested_by);
  }

  void add_command(const std::string& command, const std::string& source_id, const std::string& requested_by) {
    json::Writer arguments;
    arguments.begin_object().member("command", command).end_object();
    add_call("bash", std::move(arguments).text(), source_id, requested_by);
  }

  void add_call(const std::string& name, std::string arguments, const std::string& source_id,
                const std::string& requested_by) {
    pending_.push_back({source_id, turns_.call({.name = name,
                                                .kind = name == "bash" ? "command" : "function",
                                                .source_id = source_id,
                                                .requested_by = requested_by,
                                                .arguments = std::move(arguments)})});
  }

  // The content is the text sent to the model; the raw output is also kept if it has more text.
  void add_result(const json::Value& message) {
    const json::Value extra = message["extra"];
    const std::string id = message["tool_call_id"].string_or(message["call_id"].string_or(""));
    auto found = std::ranges::find(pending_, id, &Call::source_id);
    if (found == pending_.end()) found = pending_.begin();
    TurnReturn result{.call_id = found->call_id};
    pending_.erase(found);
    const json::Value content = message["content"] ? message["content"] : message["output"];
    result.parts = content_parts(content, result.rest);
    const std::string text = content_text(content);
    result.exit_code = extra["returncode"] ? extra["returncode"].as_int() : returncode_in(text);
    const std::string exception = extra["exception_info"].string_or("");
    if (result.exit_code) result.status = *result.exit_code == 0 ? "ok" : "error";
    if (!exception.empty()) {
      result.status = extra["exception_type"].string_or("") == "TimeoutExpired" ? "timeout"
                      : exception == "action was not executed"                  ? "cancelled"
                                                                                : "error";
      result.exit_code.reset();  // -1: the command did not end
    }
    const bool repeats = text.find(extra["raw_output"].string_or("")) != std::string::npos;
    result.rest.keep(message, {"role", "content", "output", "extra", "tool_call_id", "call_id", "type", "timestamp"});
    result.rest.keep(extra,
                     {"timestamp", result.exit_code ? "returncode" : "timestamp", repeats ? "raw_output" : "timestamp"},
                     "extra");
    turns_.returned(result);
  }

  // Adds the end of the run. A submitting command ends the run before its result is recorded as a message.
  void add_exit(const json::Value& message) {
    SourceRest rest;
    std::vector<std::string> parts = content_parts(message["content"], rest);
    rest.keep(message, {"content", "extra"}).keep(message["extra"], {"timestamp"}, "extra");
    const bool submits = message["extra"]["exit_status"].string_or("") == "Submitted" && !pending_.empty();
    if (!submits) return turns_.message("tool", parts, rest);
    TurnReturn result{.call_id = pending_.back().call_id, .status = "ok", .parts = std::move(parts)};
    result.rest = std::move(rest);
    turns_.returned(result);
    pending_.pop_back();
  }

  // An invalid answer is recorded only in the message that rejects it.
  void add_refused_answer(const json::Value& extra) {
    const json::Value response = extra["response"];
    const json::Value message = response["choices"].size() > 0 ? *response["choices"].begin() : json::Value();
    const json::Value said = message["message"]["content"] ? message["message"]["content"] : extra["model_response"];
    if (!response.is(json::Kind::object) && !said) return;
    turns_.begin_step();
    TurnAnswer answer{.model = response["model"].string_or(model_)};
    answer.parts = content_parts(said, answer.rest);
    for (const json::Value call : message["message"]["tool_calls"]) {
      answer.parts.push_back(tool_call_part_json(call["id"].string_or(""), call["function"]["name"].string_or(""),
                                                 call["function"]["arguments"]));
    }
    count(answer, response, extra);
    turns_.answer(answer);
  }

  void add_message(const json::Value& message, const std::string& role) {
    add_refused_answer(message["extra"]);
    const bool is_known = role == "system" || role == "user" || role == "tool" || role == "developer";
    SourceRest rest;
    const json::Value content = message["content"] ? message["content"] : message["output"];
    const std::vector<std::string> parts = content_parts(content, rest);
    rest.keep(message, {"content", "output", "extra", "timestamp", is_known ? "role" : "content"});
    rest.keep(message["extra"], {"timestamp"}, "extra");
    turns_.message(is_known ? role : "user", parts, rest);
    if (role == "user" && message["extra"]["actions"].size() > 0) add_commands(message, {});
  }

  TurnWriter turns_;
  const std::string model_;
  std::string submission_;
  std::deque<Call> pending_;
  std::int64_t input_tokens_ = 0, output_tokens_ = 0;
  bool has_costs_ = false;
};

}  // namespace

bool is_mini_swe_agent(const json::Value& record) {
  if (!record["messages"].is(json::Kind::array)) return false;
  return record["trajectory_format"].string_or("").starts_with("mini-swe-agent") || record["info"]["mini_version"] ||
         (record["info"]["model_stats"] && record["info"]["exit_status"]);
}

Result<ImportedRun> translate_mini_swe_agent(const json::Value& record) {
  if (!record["messages"].is(json::Kind::array))
    return Error(Errc::invalid_argument, "this is not a trajectory of mini-swe-agent: it has no list \"messages\"");
  const json::Value info = record["info"];
  ImportedRun run{.agent = std::string(mini_agent), .external_id = record["instance_id"].string_or("")};
  run.submission = info["submission"].string_or("");
  const std::string model = info["config"]["model"]["model_name"].string_or("");
  if (!model.empty()) run.labels.emplace_back("model", model);
  MiniTrace trace(run.events, model);
  trace.turns().begin_item();
  SourceRest rest;
  rest.keep(record, {"messages", "info", "instance_id"}).keep(info, {"submission"}, "info");
  trace.turns().source("mini_swe_agent", "info", rest);
  trace.expect_submission(run.submission);
  for (const json::Value message : record["messages"]) {
    if (run.goal.empty() && message["role"].string_or("") == "user")
      run.goal = goal_in(content_text(message["content"]));
    trace.add(message);
  }
  trace.end();
  const std::string status = info["exit_status"].string_or("");
  run.end.outcome = status == "Submitted" ? "success" : status.empty() ? unknown_end : "failure";
  run.end.summary = status.empty() ? "the trajectory has no exit status" : preview(status, 4'096);
  const json::Value cost = info["model_stats"]["instance_cost"];
  const bool has_tokens = trace.input_tokens() + trace.output_tokens() > 0;
  if (cost.as_double().value_or(-1) >= 0 && has_tokens && !trace.has_costs()) {
    json::Writer usage;
    usage.begin_object().member("input_tokens", trace.input_tokens()).member("output_tokens", trace.output_tokens());
    usage.key("cost").begin_object().raw_member("amount", cost.source()).member("currency", "USD").end_object();
    run.end.usage = std::move(usage.end_object()).text();
  }
  if (cost.is(json::Kind::number)) run.labels.emplace_back("instance_cost", std::string(cost.source()));
  return run;
}

}  // namespace muniment::cli
