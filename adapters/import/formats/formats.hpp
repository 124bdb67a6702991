// Declares the translations of the formats that are read whole: one row of the table (format.cpp) for each. All are
// pure functions of the record. Errors: invalid_argument, if the record is of another format.
#pragma once

#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// Trajectories in the Agent Trajectory Interchange Format (ATIF).
inline constexpr std::string_view atif_format = "atif";
bool is_atif(const json::Value& record);
Result<ImportedRun> translate_atif(const json::Value& record);

// Sessions of Codex: the lines of a rollout file, or those of `codex exec --json`.
inline constexpr std::string_view codex_format = "codex";
bool is_codex_line(const json::Value& record);
Result<ImportedRun> translate_codex(const std::vector<json::Value>& lines);

// Sessions of Gemini CLI.
inline constexpr std::string_view gemini_cli_format = "gemini-cli";
bool is_gemini_cli(const json::Value& record);
Result<ImportedRun> translate_gemini_cli(const json::Value& record);

// The plain format of docs/events.md: one JSON object a line for each message, with role, content, and optionally tool,
// time, usage, model and cost. The lines of a file are one run. Records without a role are kept as they are. A request
// of OpenAI's or Anthropic's API, an object with a list "messages", is a run as well.
inline constexpr std::string_view messages_format = "messages";
bool is_message(const json::Value& record);
Result<ImportedRun> translate_messages(const std::vector<json::Value>& records);
bool is_message_list(const json::Value& record);
Result<ImportedRun> translate_message_list(const json::Value& record);

inline constexpr std::string_view mini_swe_agent_format = "mini-swe-agent";
bool is_mini_swe_agent(const json::Value& record);
Result<ImportedRun> translate_mini_swe_agent(const json::Value& record);

// A record of OpenHands is a run; the events of a file are a run.
inline constexpr std::string_view openhands_format = "openhands";
bool is_openhands(const json::Value& record);
Result<ImportedRun> translate_openhands(const json::Value& record);
bool is_openhands_event(const json::Value& record);
Result<ImportedRun> translate_openhands_events(const std::vector<json::Value>& events);

inline constexpr std::string_view swe_agent_format = "swe-agent";
bool is_swe_agent(const json::Value& record);
Result<std::vector<ImportedRun>> translate_swe_agent(const json::Value& record);

inline constexpr std::string_view tau2_format = "tau2";
bool is_tau2(const json::Value& record);
Result<std::vector<ImportedRun>> translate_tau2(const json::Value& record);

inline constexpr std::string_view tau_bench_format = "tau-bench";
bool is_tau_bench(const json::Value& record);
Result<ImportedRun> translate_tau_bench(const json::Value& record);

}  // namespace muniment::cli
