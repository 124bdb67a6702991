// Translates OpenHands trajectories in their two published forms: the standardised form (id, content: a list of actions
// and observations, details) and the raw form (instance_id, messages as in chat completions, tools, test_result). A
// file is a JSON list or JSONL.
#pragma once

#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "cli/import/events.hpp"

namespace muniment::cli {

inline constexpr std::string_view openhands_format = "openhands";

// Errors: invalid_argument if the record has neither form.
Result<ImportedRun> translate_openhands(const json::Value& record);

}  // namespace muniment::cli
