// The setting `retention`: rules for the erasure of runs by age (docs/operations.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment {

struct RetentionRule {
  std::string name;
  std::int64_t days = 0;  // since the end of a run
  std::string label;      // k=v; this and the next two: empty: any
  std::string agent;
  std::string thread;  // external id of the run: the thread of LangGraph, the session of an agent
  std::string reason;  // stays in the log
  std::string legal_basis;
};

// Parses {"ci": {"days": 90, "label": "env=ci"}}. An empty text means no rules. Errors: invalid_argument.
Result<std::vector<RetentionRule>> parse_retention(std::string_view json);

}  // namespace muniment
