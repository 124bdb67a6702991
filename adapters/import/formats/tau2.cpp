#include "adapters/import/formats/formats.hpp"

#include <fmt/format.h>

#include "adapters/import/formats/chat.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view tau2_agent = "tau2-bench";

// Members of a simulation, of its messages and of the file.
constexpr std::string_view tau2_members[] = {
    "agent_cost",
    "agent_usage",
    "audio_format",
    "audio_path",
    "audio_script_gold",
    "auth_classification",
    "channel_effects",
    "chunk_id",
    "contains_speech",
    "duration",
    "effect_timeline",
    "end_time",
    "format_version",
    "generation_time_seconds",
    "hallucination_check",
    "hallucination_retries_used",
    "id",
    "info",
    "is_audio",
    "is_final_chunk",
    "mode",
    "policy",
    "provider_session_id",
    "raw_data",
    "requestor",
    "review",
    "reward_info",
    "seed",
    "simulation_index",
    "source",
    "source_effects",
    "speech_effects",
    "speech_environment",
    "start_time",
    "task",
    "task_id",
    "termination_reason",
    "ticks",
    "timestamp",
    "trial",
    "turn_idx",
    "turn_taking_action",
    "unused",
    "user_cost",
    "user_only_review",
    "utterance_ids",
};

// The environment marks its errors; a result without the mark is one of an older version.
ToolOutcome judge_tau2(std::string_view text) { return {text.starts_with("Error") ? "error" : "ok", std::nullopt}; }

bool is_simulation(const json::Value& record) {
  const bool has_dialogue = record["messages"].is(json::Kind::array) || record["ticks"].is(json::Kind::array);
  return has_dialogue && record["task_id"] && (record["termination_reason"] || record["reward_info"]);
}

json::Value task_of(const json::Value& results, const json::Value& simulation) {
  const std::string id = label_word(simulation["task_id"]);
  for (const json::Value task : results["tasks"]) {
    if (!id.empty() && label_word(task["id"]) == id) return task;
  }
  return {};
}

// Adds the sentences of the user's instructions, which are a text or an object of texts.
void add_sentences(std::string& out, const json::Value& instructions) {
  if (const auto text = instructions.as_string()) {
    if (!text->empty()) out += (out.empty() ? "" : "\n") + *text;
    return;
  }
  if (!instructions.is(json::Kind::object)) return;
  for (const char* name : {"reason_for_call", "task_instructions"}) add_sentences(out, instructions[name]);
}

// The reason for the call and the instructions of the simulated user; else the ticket, or the first words of the user.
std::string goal_of(const json::Value& task, const json::Value& simulation) {
  std::string goal;
  add_sentences(goal, task["user_scenario"]["instructions"]);
  if (goal.empty()) goal = task["ticket"].string_or("");
  if (goal.empty()) goal = task["description"]["purpose"].string_or("");
  for (const json::Value message : simulation["messages"]) {
    if (!goal.empty()) break;
    if (message["role"].string_or("") == "user") goal = content_text(message["content"]);
  }
  return goal;
}

// Adds a message for each side that spoke or acted in this tick of a voice simulation.
void add_tick(ChatTrace& chat, const json::Value& tick) {
  for (const std::string side : {"agent", "user"}) {
    const json::Value chunk = tick[side + "_chunk"], calls = tick[side + "_tool_calls"];
    const json::Value said = chunk["content"];
    const bool has_words = said.is(json::Kind::string) && !chunk["is_audio"].as_bool().value_or(false);
    if (!(has_words && !said.string_or("").empty()) && calls.size() == 0) continue;
    json::Writer message;
    message.begin_object().member("role", side == "agent" ? "assistant" : "user");
    if (has_words) message.raw_member("content", said.source());
    if (calls.size() > 0) message.raw_member("tool_calls", one_line_json(calls));
    if (tick["timestamp"]) message.raw_member("timestamp", tick["timestamp"].source());
    message.end_object();
    if (const auto document = json::parse(std::string_view(message.text()))) chat.add(document->root());
    for (const json::Value result : tick[side + "_tool_results"]) chat.add(result);
  }
}

void end_simulation(ImportedRun& run, const json::Value& simulation) {
  const json::Value reward = simulation["reward_info"]["reward"];
  const auto number = reward.as_double();
  const std::string reason = simulation["termination_reason"].string_or("");
  run.end.outcome = !number ? unknown_end : *number >= 1.0 ? "success" : "failure";
  run.end.summary = !number ? "the simulation has no reward" : fmt::format("reward {}", reward.source());
  if (!reason.empty()) run.end.summary += ", " + preview(reason, 256);
}

// Keeps the members that concern all runs of the file. The first run also keeps the tasks that no simulation used.
void keep_results(SourceRest& rest, const json::Value& results, bool is_first) {
  rest.keep(results, {"tasks", "simulations"}, "results");
  if (!is_first) return;
  json::Writer unused;
  unused.begin_array();
  bool any = false;
  for (const json::Value task : results["tasks"]) {
    bool used = false;
    for (const json::Value simulation : results["simulations"])
      used = used || label_word(simulation["task_id"]) == label_word(task["id"]);
    if (used && task.is(json::Kind::object)) continue;
    any = true;
    write_value(unused, task);
  }
  for (const json::Value simulation : results["simulations"]) {
    if (simulation.is(json::Kind::object)) continue;
    any = true;
    write_value(unused, simulation);
  }
  if (any) rest.keep_json("unused", std::move(unused.end_array()).text());
}

ImportedRun translate_simulation(const json::Value& results, const json::Value& simulation, bool is_first) {
  const json::Value task = task_of(results, simulation);
  const json::Value info = results["info"];
  ImportedRun run{.agent = std::string(tau2_agent)};
  run.goal = goal_of(task, simulation);
  run.external_id = simulation["id"].string_or("");
  label_run(run, "task_id", simulation["task_id"]);
  label_run(run, "trial", simulation["trial"]);
  label_run(run, "reward", simulation["reward_info"]["reward"]);
  label_run(run, "termination_reason", simulation["termination_reason"]);
  label_run(run, "domain", info["environment_info"]["domain_name"]);
  label_run(run, "agent_cost", simulation["agent_cost"]);
  label_run(run, "user_cost", simulation["user_cost"]);
  TurnWriter head(run.events, tau2_members);
  head.begin_item(source_time(simulation["start_time"]));
  SourceRest rest;
  rest.keep(simulation, {"messages"}).keep_value("task", task);
  keep_results(rest, results, is_first);
  head.source("tau2", "simulation", rest);
  ChatTrace chat(run.events, judge_tau2, tau2_members, info["agent_info"]["llm"].string_or(""));
  for (const json::Value message : simulation["messages"]) {
    chat.add(message);
  }
  if (simulation["messages"].size() == 0) {
    for (const json::Value tick : simulation["ticks"]) add_tick(chat, tick);
  }
  chat.end();
  end_simulation(run, simulation);
  return run;
}

}  // namespace

bool is_tau2(const json::Value& record) {
  return record["simulations"].is(json::Kind::array) || record["simulation_index"].is(json::Kind::array) ||
         is_simulation(record);
}

Result<std::vector<ImportedRun>> translate_tau2(const json::Value& record) {
  std::vector<ImportedRun> runs;
  for (const json::Value simulation : record["simulations"]) {
    if (simulation.is(json::Kind::object)) runs.push_back(translate_simulation(record, simulation, runs.empty()));
  }
  if (!runs.empty()) return runs;
  if (is_simulation(record)) {
    runs.push_back(translate_simulation({}, record, true));
    return runs;
  }
  if (record["simulation_index"].size() > 0)
    return Error(Errc::invalid_argument,
                 "this file only lists the simulations; import the files of the folder simulations/ beside it");
  return Error(Errc::invalid_argument, "this is not a result of tau2-bench: it has no \"simulations\"");
}

}  // namespace muniment::cli
