// Translates OpenHands trajectories. Published data sets have two forms: the standardised form (id, content: a list of
// actions and observations, details) and the raw form (instance_id, messages as in chat completions, tools,
// test_result). OpenHands itself writes lists of events: a file of them is a run, as is a record of its evaluation
// (instance_id, history) and the answer of its server (trajectory).
#pragma once

#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::string_view openhands_format = "openhands";

// A record that is a run.
bool is_openhands(const json::Value& record);
// Errors: invalid_argument if the record has none of the forms.
Result<ImportedRun> translate_openhands(const json::Value& record);

// An event; the events of a file are a run.
bool is_openhands_event(const json::Value& record);
// Errors: invalid_argument if none of the records is an event.
Result<ImportedRun> translate_openhands_events(const std::vector<json::Value>& events);

}  // namespace muniment::cli
