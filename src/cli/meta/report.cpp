#include "cli/meta/report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muniment::cli {

MetaSummary summarize(const std::vector<CriterionResult>& results) {
  MetaSummary summary;
  summary.total = results.size();
  summary.met = static_cast<std::size_t>(std::ranges::count(results, true, &CriterionResult::met));
  summary.all_met = summary.total > 0 && summary.met == summary.total;
  if (summary.total > 0) {
    const std::size_t tenths = summary.met * 1000 / summary.total;  // rounded down: below 100 unless all are met
    summary.percentage = static_cast<double>(tenths) / 10;
  }
  return summary;
}

std::string summary_text(const std::vector<CriterionResult>& results) {
  const MetaSummary summary = summarize(results);
  std::string text = fmt::format("{} of {} criteria are met ({} %)", summary.met, summary.total, summary.percentage);
  std::string_view separator = ". Not met: ";
  for (const CriterionResult& result : results) {
    if (result.met) continue;
    text += fmt::format("{}{} {}", separator, result.number, result.name);
    separator = ", ";
  }
  return text;
}

void write_report(json::Writer& out, std::string_view run_id, const std::vector<CriterionResult>& results) {
  out.member("run_id", run_id).key("criteria").begin_array();
  for (const CriterionResult& result : results) {
    out.begin_object().member("number", result.number).member("name", result.name);
    out.member("met", result.met).member("detail", result.detail).end_object();
  }
  const MetaSummary summary = summarize(results);
  out.end_array().key("summary").begin_object();
  out.member("total_criteria", summary.total).member("met", summary.met);
  out.member("completion_percentage", summary.percentage).member("all_criteria_met", summary.all_met).end_object();
}

}  // namespace muniment::cli
