#include "adapters/import/formats/formats.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "adapters/import/formats/chat.hpp"
#include "adapters/import/formats/openhands_events.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view openhands_agent = "openhands";

// The runtime writes "[Command finished with exit code 1]" at the end of a command's output; elsewhere it is ordinary
// text.
std::optional<std::int64_t> exit_code_in(std::string_view text) {
  constexpr std::string_view words = "[Command finished with exit code ";
  const std::size_t at = text.rfind(words);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + words.size());
  const std::size_t end = rest.find(']');
  if (end == std::string_view::npos || rest.find_first_not_of(" \t\r\n", end + 1) != std::string_view::npos)
    return std::nullopt;
  return parse_decimal(rest.substr(0, end));
}

ToolOutcome judge_openhands(std::string_view text) {
  constexpr std::string_view heading = "OBSERVATION:\n";
  if (text.starts_with(heading)) text.remove_prefix(heading.size());
  ToolOutcome outcome;
  outcome.exit_code = exit_code_in(text);
  if (outcome.exit_code) outcome.status = *outcome.exit_code == 0 ? "ok" : "error";
  if (text.starts_with("ERROR:")) outcome.status = "error";
  return outcome;
}

// Members of the records of data sets and of their messages.
constexpr std::string_view data_set_members[] = {
    "apply_patch_output",
    "axtree",
    "description",
    "details",
    "function",
    "function_call",
    "html",
    "image_observation",
    "kwargs",
    "language",
    "name",
    "report",
    "resolved",
    "run_id",
    "source",
    "test_output",
    "tools",
    "url",
    "viewport_size",
};

// Writes the data outside the dialogue as separate events.
void add_openhands_source(std::vector<ImportedEvent>& events, std::string_view part, const json::Value& record,
                          std::initializer_list<std::string_view> placed) {
  SourceRest rest;
  if (rest.keep(record, placed).empty()) return;
  json::Writer body;
  body.begin_object().member("part", part);
  rest.write(body, data_set_members);
  events.push_back({std::string(part), "x.openhands.source", {}, std::move(body.end_object()).text()});
}

class StandardTrace {
 public:
  explicit StandardTrace(std::vector<ImportedEvent>& events) : events_(events) {}

  void add(const json::Value& item) {
    ++items_;
    const std::string kind = item["class_"].string_or("");
    has_class_ = has_class_ || !kind.empty();
    if (kind.ends_with("_action")) return add_action(item, kind);
    const bool from_user = item["source"].string_or("") == "user";
    if (kind.ends_with("_observation") && !from_user && !pending_.empty()) return add_return(item);
    add_message(item, from_user || kind.empty() ? "user" : "tool");
  }

  void end() {
    if (!step_.empty()) add("end", "step.ended", unknown_step_end);
  }

  bool finished() const { return finished_; }
  bool has_class() const { return has_class_; }

 private:
  void add(std::string_view what, std::string type, std::string body) {
    events_.push_back({fmt::format("{}/{}", items_, what), std::move(type), step_, std::move(body)});
  }

  void begin_step() {
    if (!step_.empty()) add("step-end", "step.ended", unknown_step_end);
    step_ = fmt::format("turn-{:04}", ++steps_);
    json::Writer body;
    body.begin_object().member("name", fmt::format("turn {}", steps_)).member("kind", "turn").end_object();
    add("step", "step.started", std::move(body).text());
  }

  // An action is an answer of the model: its description and the call. The content of a message is only text.
  void add_action(const json::Value& item, const std::string& kind) {
    begin_step();
    const std::string model_call = fmt::format("model-{:04}", steps_);
    json::Writer called;
    called.begin_object().member("call_id", model_call).member("operation", "chat");
    called.member("provider", unknown_model).member("model", unknown_model);
    called.key("parameters").begin_object().end_object().end_object();
    add("model", "model.called", std::move(called).text());

    const bool is_message = kind == "message_action";
    json::Writer body;
    body.begin_object().member("call_id", model_call).member("status", "ok").member("model", unknown_model);
    body.key("finish_reasons").begin_array().end_array().key("content").begin_array();
    if (const std::string said = item["description"].string_or(""); !said.empty()) write_part(body, "text", said);
    if (is_message) write_part(body, "text", item["content"].string_or(""));
    body.end_array();
    SourceRest rest;
    if (is_message) {
      rest.keep(item, {"class_", "content", "description"});
    } else {
      rest.keep(item, {"class_", "content", "description", "language", "function", "kwargs"});
    }
    rest.write(body, data_set_members);
    body.end_object();
    add("answer", "model.answered", std::move(body).text());
    if (!is_message) add_call(item, kind, model_call);
  }

  void add_call(const json::Value& item, const std::string& kind, const std::string& model_call) {
    const bool is_code = kind == "code_action";
    const std::string name = name_or(item[is_code ? "language" : "function"].string_or(""), kind);
    finished_ = finished_ || name == "finish";
    pending_ = fmt::format("tool-{:04}", steps_);
    json::Writer body;
    body.begin_object()
        .member("call_id", pending_)
        .member("name", name)
        .member("kind", is_code ? "command" : "function");
    body.member("requested_by", model_call);
    if (is_code) {
      body.key("arguments").begin_object().member("code", item["content"].string_or("")).end_object();
    } else if (const json::Value arguments = item["kwargs"]) {
      write_value(body.key("arguments"), arguments);
    }
    body.end_object();
    add("tool", "tool.called", std::move(body).text());
  }

  // An observation is the result of the action before it.
  void add_return(const json::Value& item) {
    const ToolOutcome outcome = judge_openhands(item["content"].string_or(""));
    json::Writer body;
    body.begin_object().member("call_id", pending_).member("status", outcome.status);
    if (outcome.exit_code) body.member("exit_code", *outcome.exit_code);
    write_observation(body, item);
    body.end_object();
    add("returned", "tool.returned", std::move(body).text());
    pending_.clear();
  }

  void add_message(const json::Value& item, std::string_view role) {
    json::Writer body;
    body.begin_object().member("message_id", fmt::format("m{}", items_)).member("role", role);
    write_observation(body, item);
    body.end_object();
    add("message", "message.added", std::move(body).text());
  }

  // Writes a text, or a page with its source and accessibility tree.
  static void write_observation(json::Writer& body, const json::Value& item) {
    SourceRest rest;
    body.key("content").begin_array();
    for (const char* name : {"content", "html", "axtree"}) {
      if (const auto text = item[name].as_string()) {
        write_part(body, "text", *text);
      } else {
        rest.keep_value(name, item[name]);
      }
    }
    body.end_array();
    rest.keep(item, {"class_", "content", "html", "axtree"});
    rest.write(body, data_set_members);
  }

  std::vector<ImportedEvent>& events_;
  std::size_t items_ = 0;
  std::size_t steps_ = 0;
  std::string step_;
  std::string pending_;  // the action without a result
  bool finished_ = false;
  bool has_class_ = false;  // true: an item has a class; required in this format
};

Result<ImportedRun> translate_standard(const json::Value& record) {
  ImportedRun run{.agent = std::string(openhands_agent), .external_id = record["id"].string_or("")};
  StandardTrace trace(run.events);
  add_openhands_source(run.events, "record", record, {"id", "content"});
  for (const json::Value item : record["content"]) {
    if (run.goal.empty() && item["source"].string_or("") == "user") run.goal = item["content"].string_or("");
    trace.add(item);
  }
  if (!trace.has_class())
    return Error(Errc::invalid_argument,
                 "this is not an OpenHands trajectory: no item of \"content\" has a \"class_\"");
  trace.end();
  const std::string feedback = record["details"]["feedback"].string_or("");
  if (!feedback.empty()) run.labels.emplace_back("feedback", feedback);
  if (feedback == "positive")
    run.end.outcome = "success";
  else if (feedback == "negative")
    run.end.outcome = "failure";
  else
    run.end.outcome = trace.finished() ? "success" : unknown_end;
  run.end.summary = feedback.empty() ? (trace.finished() ? "the agent finished" : "the trace does not say how it ended")
                                     : "user feedback: " + preview(feedback, 256);
  return run;
}

Result<ImportedRun> translate_raw(const json::Value& record) {
  ImportedRun run{.agent = std::string(openhands_agent), .external_id = record["instance_id"].string_or("")};
  if (const std::string name = record["run_id"].string_or(""); !name.empty()) run.labels.emplace_back("run", name);
  ChatTrace chat(run.events, judge_openhands, data_set_members);
  add_openhands_source(run.events, "record", record, {"instance_id", "messages", "test_result", "resolved"});
  bool has_role = false;
  for (const json::Value message : record["messages"]) {
    has_role = has_role || message["role"].is(json::Kind::string);
    if (run.goal.empty() && message["role"].string_or("") == "user")
      run.goal = task_heading(content_text(message["content"]));
    chat.add(message);
  }
  chat.end();
  if (!has_role) return Error(Errc::invalid_argument, "no item of \"messages\" has a role");
  const json::Value result = record["test_result"];
  add_openhands_source(run.events, "test_result", result, {"git_patch"});
  run.submission = result["git_patch"].string_or("");
  const auto resolved = record["resolved"].as_bool();
  run.end.outcome = !resolved ? unknown_end : *resolved ? "success" : "failure";
  run.end.summary = !resolved ? "the trace does not say how it ended" : *resolved ? "resolved" : "not resolved";
  return run;
}

// An older evaluation has pairs of an action and its observation.
void flatten(const json::Value& list, std::vector<json::Value>& events) {
  for (const json::Value item : list) {
    if (item.is(json::Kind::array)) {
      flatten(item, events);
    } else {
      events.push_back(item);
    }
  }
}

void add_openhands_events(OpenHandsState& state, const std::vector<json::Value>& events) {
  OpenHandsEvents server(state);
  OpenHandsSdkEvents sdk(state);
  json::Value metrics;
  for (const json::Value& event : events) {
    sdk.look_ahead(event);
    if (event["llm_metrics"].is(json::Kind::object)) metrics = event["llm_metrics"];
  }
  for (const json::Value& event : events) {
    if (event["kind"].is(json::Kind::string)) {
      sdk.add(event);
    } else {
      server.add(event);
    }
  }
  state.turns.begin_item();
  state.turns.end_step();
  SourceRest rest;
  state.turns.source("openhands", "llm_metrics", rest.keep(metrics, {}));
  state.set_usage(metrics["accumulated_token_usage"], metrics["accumulated_cost"]);
}

void end_openhands(OpenHandsState& state) {
  RunEnd& end = state.run.end;
  end.outcome = state.outcome.empty() ? unknown_end : state.outcome;
  end.summary = state.summary.empty() ? "the trace does not say how it ended" : preview(state.summary, 1'000);
}

// A record of an evaluation (EvalOutput): the events, what was asked for, and how it was judged.
Result<ImportedRun> translate_history(const json::Value& record) {
  ImportedRun run{.agent = std::string(openhands_agent), .external_id = record["instance_id"].string_or("")};
  OpenHandsState state(run);
  state.model = record["metadata"]["llm_config"]["model"].string_or(record["metadata"]["llm"]["model"].string_or(""));
  if (!state.model.empty()) run.labels.emplace_back("model", state.model);
  if (const std::string agent = record["metadata"]["agent_class"].string_or(""); !agent.empty())
    run.labels.emplace_back("agent_class", agent);
  run.goal = task_heading(record["instruction"].string_or(""));
  state.turns.begin_item();
  SourceRest rest;
  rest.keep(record, {"history", "trajectory", "test_result", "instance_id"})
      .keep(record["test_result"], {"git_patch"}, "test_result");
  state.turns.source("openhands", "record", rest);
  state.take_metrics(record["metrics"]);
  std::vector<json::Value> events;
  flatten(record[record["history"] ? "history" : "trajectory"], events);
  add_openhands_events(state, events);
  state.set_usage(record["metrics"]["accumulated_token_usage"], record["metrics"]["accumulated_cost"]);
  const json::Value error = record["error"];
  if (const auto text = error.as_string(); text && !text->empty()) {
    state.outcome = "failure";
    state.summary = *text;
  }
  const json::Value report = record["test_result"]["report"];
  const auto resolved = record["resolved"] ? record["resolved"].as_bool() : report["resolved"].as_bool();
  if (resolved) {
    state.outcome = *resolved ? "success" : "failure";
    state.summary = *resolved ? "resolved" : "not resolved";
  }
  end_openhands(state);
  run.submission = record["test_result"]["git_patch"].string_or("");
  return run;
}

bool has_events(const json::Value& list) {
  std::vector<json::Value> events;
  flatten(list, events);
  return std::any_of(events.begin(), events.end(), is_openhands_event);
}

// A record of the evaluation without a history, as after an error.
bool is_evaluation(const json::Value& record) {
  return record["instance_id"].is(json::Kind::string) && record["test_result"].is(json::Kind::object) &&
         record["metadata"].is(json::Kind::object);
}

}  // namespace

bool is_openhands(const json::Value& record) {
  for (const json::Value part : record["content"]) {
    if (part["class_"]) return true;
    break;
  }
  if (record["instance_id"] && record["messages"].is(json::Kind::array)) return true;
  return has_events(record["history"]) || has_events(record["trajectory"]) || is_evaluation(record);
}

Result<ImportedRun> translate_openhands_events(const std::vector<json::Value>& events) {
  if (std::none_of(events.begin(), events.end(), is_openhands_event))
    return Error(Errc::invalid_argument, "none of the records is an event of OpenHands");
  ImportedRun run{.agent = std::string(openhands_agent)};
  OpenHandsState state(run);
  add_openhands_events(state, events);
  end_openhands(state);
  return run;
}

Result<ImportedRun> translate_openhands(const json::Value& record) {
  if (record["content"].is(json::Kind::array)) return translate_standard(record);
  if (record["messages"].is(json::Kind::array)) return translate_raw(record);
  if (has_events(record["history"]) || has_events(record["trajectory"]) || is_evaluation(record))
    return translate_history(record);
  return Error(Errc::invalid_argument,
               "this is not an OpenHands trajectory: it has no list \"content\", \"messages\", \"history\" or "
               "\"trajectory\" of its events");
}

}  // namespace muniment::cli
