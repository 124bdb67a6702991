// Translates tau-bench dialogues of an agent, a simulated user and tools. A result file is a JSON list of records
// (task_id, reward, info, traj: chat completions, trial); a file of examples is JSONL, each record a text of lines
// "role: …" (messages_display) without tool calls.
#pragma once

#include <string_view>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::string_view tau_bench_format = "tau-bench";

bool is_tau_bench(const json::Value& record);

// Errors: invalid_argument if the record has neither form.
Result<ImportedRun> translate_tau_bench(const json::Value& record);

}  // namespace muniment::cli
