// Reads test and analysis reports from the output of a tool: JUnit XML, TAP, SARIF, GoogleTest XML and JSON, and the
// console output of pytest, unittest, ctest, go test, cargo test and node's runner, and the last lines of other
// runners. Pure; the text is untrusted. Each format is one file and one row of the table in formats.cpp.
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
// Limit of a report that is parsed as one JSON text: an empty array of two bytes becomes a node of 28.
inline constexpr std::size_t json_report_bytes_max = 4 << 20;
// Format of the comparison of a blind workflow, which the daemon makes; no parser returns it.
inline constexpr std::string_view golden_format = "golden";
inline constexpr std::size_t failures_kept_max = 20;
inline constexpr std::size_t test_name_bytes_max = 256;
inline constexpr std::size_t passes_kept_max = 200'000;

struct Counts {
  std::int64_t total = 0;
  std::int64_t passed = 0;
  std::int64_t failed = 0;   // failures and errors
  std::int64_t skipped = 0;  // skipped, disabled, ignored and todo

  bool operator==(const Counts&) const = default;
};

struct Report {
  std::string format;             // name of the row: "junit", "tap", …; of the runner for its last lines: "jest", …
  bool analysis = false;          // SARIF: `failed` counts findings of level error, and a report without tests is valid
  Counts counts;                  // counts of the listed tests; of the summary if the format lists none
  std::optional<Counts> summary;  // the report's own summary; nullopt: it has none
  bool listed = false;            // `counts` come from listed tests
  bool complete = false;          // the end of the report was read: a closing tag, a plan or a summary line
  std::vector<std::string> failures;  // the first failures_kept_max names of failed tests, cut at test_name_bytes_max
  // Names of the passed tests, cut like those of the failed ones, if the report names them; at most passes_kept_max.
  std::vector<std::string> passes;
  std::string problem;          // one sentence if the report contradicts itself or is damaged; otherwise empty
  std::string note;             // one sentence if its totals differ from its list, which decides; otherwise empty
  std::int64_t warnings = 0;    // SARIF: findings of level warning; part of counts.passed
  std::int64_t flaky = 0;       // tests that passed at a later attempt; part of counts.passed
  std::int64_t deselected = 0;  // tests that the runner found and left out; no part of counts
  std::int64_t packages = 0;    // passed packages of Go without a listed test; they count if no test is listed
  bool unreadable = false;      // the parser stopped before the end of the text, for the reason in `problem`
};

// Returns whether `passes` has the name of each passed test.
bool names_passes(const Report& report);

struct Format {
  std::string_view name;
  bool (*recognises)(std::string_view text);       // searches plain text for marks of the format, in one pass
  Result<Report> (*parse)(std::string_view text);  // Errors: invalid_argument, too_large
  std::size_t bytes_max = report_bytes_max;        // largest text that is parsed
};

std::span<const Format> formats();

// Returns the report in `text`, parsed by the first format that recognises it; nullopt if no format does. If that
// format cannot parse the text, the Report has `complete` false and a `problem`.
std::optional<Report> read_report(std::string_view text);

}  // namespace muniment::evidence::reports
