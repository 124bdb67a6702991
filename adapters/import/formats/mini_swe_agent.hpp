// Translates trajectories of mini-swe-agent (.traj.json): an object of info (exit status, submission, model statistics,
// configuration) and messages. Version 1 has bash commands in the text of the answers and results as messages of the
// user; version 1.1 has tool calls, or answers of the Responses API, and the exit code of each command.
#pragma once

#include <string_view>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::string_view mini_swe_agent_format = "mini-swe-agent";

bool is_mini_swe_agent(const json::Value& record);

// Errors: invalid_argument, if the record has no list of messages.
Result<ImportedRun> translate_mini_swe_agent(const json::Value& record);

}  // namespace muniment::cli
