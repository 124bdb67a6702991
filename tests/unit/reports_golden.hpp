// Helpers of the report readers' tests: the reports in tests/golden/reports, and JSON of parsed reports.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::evidence::reports {

inline std::string golden_report(std::string_view name) {
  const std::string path = MUNIMENT_GOLDEN "/reports/" + std::string(name);
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Returns the report in a text that some format recognises.
inline Report read_text(std::string_view text) {
  std::optional<Report> report = read_report(text);
  EXPECT_TRUE(report) << "no format recognises the text";
  return report ? std::move(*report) : Report{};
}

inline Report read_golden(std::string_view name) { return read_text(golden_report(name)); }

inline Counts counts_of(std::int64_t passed, std::int64_t failed, std::int64_t skipped) {
  return {.total = passed + failed + skipped, .passed = passed, .failed = failed, .skipped = skipped};
}

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

inline void PrintTo(const Counts& counts, std::ostream* out) {
  *out << counts.total << " tests: " << counts.passed << " passed, " << counts.failed << " failed, " << counts.skipped
       << " skipped";
}

}  // namespace muniment::evidence::reports
