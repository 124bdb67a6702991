// Test and analysis reports, read from the text that a tool wrote: JUnit XML, TAP, SARIF, GoogleTest XML and JSON, and
// the console output of pytest, unittest, ctest, go test, cargo test and node's runner. Pure; the text is hostile. A
// format is one file and one row of the table in formats.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::evidence::reports {

inline constexpr std::size_t report_bytes_max = 16 << 20;
// Of what is parsed as one JSON text: an empty array of two bytes is a node of 28.
inline constexpr std::size_t json_report_bytes_max = 4 << 20;
inline constexpr std::size_t failures_kept_max = 20;
inline constexpr std::size_t test_name_bytes_max = 256;

struct Counts {
  std::int64_t total = 0;
  std::int64_t passed = 0;
  std::int64_t failed = 0;   // failures and errors
  std::int64_t skipped = 0;  // and disabled, ignored, todo

  bool operator==(const Counts&) const = default;
};

struct Report {
  std::string format;     // "junit", "tap", …: the row's name
  bool analysis = false;  // SARIF: `failed` counts findings of level error, and a report without tests is no fault
  Counts counts;          // from the listed tests; where the format lists none, from the summary
  std::optional<Counts> summary;      // as the report itself sums up; nullopt where it has no summary
  bool listed = false;                // `counts` come from listed tests
  bool complete = false;              // the report reaches its end: closing tag, plan, summary line
  std::vector<std::string> failures;  // names of failed tests, the first failures_kept_max, cut at test_name_bytes_max
  std::string problem;                // one sentence where the report contradicts itself or is damaged; empty: none
  bool unreadable = false;            // the parser stopped before the end of the text, for the reason in `problem`
};

struct Format {
  std::string_view name;
  bool (*recognises)(std::string_view text);       // one pass for marks of the format; plain text
  Result<Report> (*parse)(std::string_view text);  // Errors: invalid_argument, too_large
  std::size_t bytes_max = report_bytes_max;        // of a text that is parsed
};

std::span<const Format> formats();

// The report in `text`, by the first format that recognises it; nullopt: none does. A text that a format recognises
// and cannot parse is a Report with `complete` false and a `problem`.
std::optional<Report> read_report(std::string_view text);

}  // namespace muniment::evidence::reports
