// Translates SWE-agent trajectories (.traj): a JSON object of environment, trajectory (action, observation, response,
// state, thought), history (role, content, agent …) and info (exit status, submission, model statistics). A trajectory
// entry becomes a step. A demonstration has only a history: each answer in it becomes a step. A run of several attempts
// (`attempts`) becomes one run for each.
#pragma once

#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::string_view swe_agent_format = "swe-agent";

bool is_swe_agent(const json::Value& record);

// Errors: invalid_argument, if the record has neither a turn nor a message.
Result<std::vector<ImportedRun>> translate_swe_agent(const json::Value& record);

}  // namespace muniment::cli
