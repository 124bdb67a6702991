// Translates trajectories in the Agent Trajectory Interchange Format (ATIF): one JSON object with the steps of an
// agent.
#include "adapters/import/formats/formats.hpp"

#include <fmt/format.h>

#include <map>
#include <string>

#include "adapters/import/formats/chat_turns.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

// Members of the trajectory, its agent, its steps and their metrics.
constexpr std::string_view atif_members[] = {
    "agent",
    "completion_token_ids",
    "extra",
    "final_metrics",
    "is_copied_context",
    "logprobs",
    "metrics",
    "notes",
    "prompt_token_ids",
    "reasoning_effort",
    "schema_version",
    "step_id",
    "subagent_trajectory_ref",
    "tool_definitions",
    "version",
};

class AtifTrace {
 public:
  AtifTrace(ImportedRun& run, std::string model)
      : run_(run), turns_(run.events, atif_members), model_(std::move(model)) {}

  void add_source(const json::Value& trajectory) {
    turns_.begin_item();
    SourceRest rest;
    turns_.source("atif", "trajectory", rest.keep(trajectory, {"session_id", "steps"}));
  }

  void add(const json::Value& step) {
    turns_.begin_item(source_time(step["timestamp"]));
    const std::string source = step["source"].string_or("");
    if (source == "agent") return add_answer(step);
    SourceRest rest;
    const std::vector<std::string> parts = content_parts(step["message"], rest);
    rest.keep(step, {"step_id", "timestamp", "source", "message", "observation"});
    if (source == "user" && run_.goal.empty()) run_.goal = task_heading(content_text(step["message"]));
    turns_.message(source == "system" ? "system" : "user", parts, rest);
    add_results(step["observation"], {});
  }

  void end() {
    turns_.begin_item();  // the end of the last step has no time
    turns_.end_step();
  }
  bool has_usage() const { return has_usage_; }

 private:
  void add_answer(const json::Value& step) {
    turns_.begin_step();
    TurnAnswer answer{.model = step["model_name"].string_or(model_)};
    if (const std::string thought = step["reasoning_content"].string_or(""); !thought.empty())
      answer.parts.push_back(reasoning_part_json(thought));
    for (std::string& part : content_parts(step["message"], answer.rest)) answer.parts.push_back(std::move(part));
    for (const json::Value call : step["tool_calls"]) {
      answer.parts.push_back(tool_call_part_json(call["tool_call_id"].string_or(""),
                                                 call["function_name"].string_or(""), call["arguments"]));
    }
    const json::Value metrics = step["metrics"];
    answer.usage = call_usage(metrics, metrics["cost_usd"]);
    has_usage_ = has_usage_ || !answer.usage.empty();
    answer.rest.keep(step, {"step_id", "timestamp", "source", "message", "model_name", "reasoning_content",
                            "tool_calls", "observation", "metrics"});
    answer.rest.keep(metrics, {"prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd"}, "metrics");
    const std::string model_call = turns_.answer(answer);
    std::map<std::string, std::string> open;
    for (const json::Value call : step["tool_calls"]) add_call(call, model_call, open);
    add_results(step["observation"], std::move(open));
  }

  void add_call(const json::Value& call, const std::string& requested_by, std::map<std::string, std::string>& open) {
    const std::string name = call["function_name"].string_or("");
    TurnCall called{.name = name,
                    .kind = name == "bash" || name == "shell" || name == "bash_command" ? "command" : "function",
                    .source_id = call["tool_call_id"].string_or(""),
                    .requested_by = requested_by,
                    .arguments = arguments_json(call["arguments"])};
    called.rest.keep(call, {"tool_call_id", "function_name", "arguments"});
    open.emplace(called.source_id, turns_.call(called));
  }

  // A result without the id of a call belongs to the only open call; otherwise it is a message of a tool.
  void add_results(const json::Value& observation, std::map<std::string, std::string> open) {
    for (const json::Value result : observation["results"]) {
      const std::string id = result["source_call_id"].string_or("");
      const auto call = id.empty() && open.size() == 1 ? open.begin() : open.find(id);
      SourceRest rest;
      std::vector<std::string> parts = content_parts(result["content"], rest);
      rest.keep(result, {"source_call_id", "content"});
      if (call == open.end()) {
        turns_.message("tool", parts, rest);
        continue;
      }
      turns_.returned(
          {.call_id = call->second, .parts = std::move(parts), .occurred_at = std::string(), .rest = std::move(rest)});
      open.erase(call);
    }
  }

  ImportedRun& run_;
  TurnWriter turns_;
  const std::string model_;
  bool has_usage_ = false;
};

// Totals count only where no step has its own.
std::string total_usage(const json::Value& totals) {
  json::Writer usage;
  const auto input = totals["total_prompt_tokens"].as_int(), output = totals["total_completion_tokens"].as_int();
  if (!input && !output) return {};
  usage.begin_object();
  if (input) usage.member("prompt_tokens", *input);
  if (output) usage.member("completion_tokens", *output);
  if (const auto cached = totals["total_cached_tokens"].as_int()) usage.member("cached_tokens", *cached);
  usage.end_object();
  const auto document = json::parse(std::string_view(usage.text()));
  return document ? call_usage(document->root(), totals["total_cost_usd"]) : std::string();
}

}  // namespace

bool is_atif(const json::Value& record) {
  return record["schema_version"].string_or("").starts_with("ATIF") && record["steps"].is(json::Kind::array);
}

Result<ImportedRun> translate_atif(const json::Value& record) {
  if (!is_atif(record))
    return Error(Errc::invalid_argument,
                 "this is not a trajectory in ATIF: it has no \"schema_version\" with \"steps\"");
  const json::Value agent = record["agent"];
  ImportedRun run{.agent = name_or(agent["name"].string_or(""), "unknown"),
                  .external_id = record["session_id"].string_or("")};
  label_run(run, "agent_version", agent["version"]);
  label_run(run, "model", agent["model_name"]);
  run.end = {std::string(unknown_end), "the format has no outcome"};
  AtifTrace trace(run, agent["model_name"].string_or(""));
  trace.add_source(record);
  for (const json::Value step : record["steps"]) trace.add(step);
  trace.end();
  if (!trace.has_usage()) run.end.usage = total_usage(record["final_metrics"]);
  return run;
}

}  // namespace muniment::cli
