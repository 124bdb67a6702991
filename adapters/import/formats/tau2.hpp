// Translates results of tau2-bench: a file of tasks and simulations, of which each simulation is a run, or a file of
// one simulation, as tau2-bench writes it into the folder simulations/.
#pragma once

#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::string_view tau2_format = "tau2";

bool is_tau2(const json::Value& record);

// Errors: invalid_argument, if the record has no simulations.
Result<std::vector<ImportedRun>> translate_tau2(const json::Value& record);

}  // namespace muniment::cli
