// Translates the plain format of docs/events.md: one JSON object a line for each message, with role, content, and
// optionally tool, time, usage, model and cost. The lines of a file are one run.
#pragma once

#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::string_view messages_format = "messages";

bool is_message(const json::Value& record);

// Records without a role are kept as they are. Errors: invalid_argument if no record is a message.
Result<ImportedRun> translate_messages(const std::vector<json::Value>& records);

}  // namespace muniment::cli
