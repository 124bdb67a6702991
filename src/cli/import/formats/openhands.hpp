// OpenHands trajectories, in the two shapes in which they are published: the standardised one (id,
// content: a list of actions and observations, details) and the raw one (instance_id, messages in the
// shape of chat completions, tools, test_result). A file is a JSON list of them, or JSONL.
#pragma once

#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "cli/import/events.hpp"

namespace muniment::cli {

inline constexpr std::string_view openhands_format = "openhands";

// Errors: invalid_argument where the record is neither.
Result<ImportedRun> translate_openhands(const json::Value& record);

}  // namespace muniment::cli
