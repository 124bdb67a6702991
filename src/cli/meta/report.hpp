// The report of the meta-validation: the result of each criterion and their summary. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::cli {

struct CriterionResult {
  int number = 0;  // 1 to 7
  std::string name;
  bool met = false;
  std::string detail;  // what was checked; if the criterion is not met, the reason
};

struct MetaSummary {
  std::size_t total = 0, met = 0;
  double percentage = 0;
  bool all_met = false;  // false if there are no criteria
};

MetaSummary summarize(const std::vector<CriterionResult>& results);

// Returns "6 of 7 criteria are met (85.7 %). Not met: 1 code validation workflow exists".
std::string summary_text(const std::vector<CriterionResult>& results);

// Writes the members run_id, criteria and summary.
void write_report(json::Writer& out, std::string_view run_id, const std::vector<CriterionResult>& results);

}  // namespace muniment::cli
