// Reads GoogleTest's JSON (--gtest_output=json). A disabled test counts as skipped.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "evidence/reports/formats.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

void read_gtest_case(const json::Value& test, std::string_view suite, Report& report) {
  const std::string result = test["result"].string_or("");  // absent before GoogleTest 1.10
  if (test["failures"].size() > 0) {
    count_test(report.counts, Outcome::failed);
    if (keeps_failures(report)) keep_failure(report, std::string(suite) + "." + test["name"].string_or(""));
    return;
  }
  const bool ran = test["status"].string_or("") == "RUN" && (result.empty() || result == "COMPLETED");
  count_test(report.counts, ran ? Outcome::passed : Outcome::skipped);
  if (ran) keep_pass(report, std::string(suite) + "." + test["name"].string_or(""));
}

// Returns a stated count. Any value except an integer from 0 to count_max is a problem of the report.
std::int64_t stated(const json::Value& object, std::string_view key, Report& report) {
  const json::Value value = object[key];
  if (!value) return 0;
  const auto count = value.as_int();
  if (count && *count >= 0 && *count <= count_max) return *count;
  note_problem(report, "the member " + std::string(key) + " is not a number from 0 to 1,000,000,000");
  return 0;
}

}  // namespace

bool recognises_gtest_json(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  return begin != std::string_view::npos && text[begin] == '{' && text.find("\"testsuites\"") != std::string_view::npos;
}

Result<Report> parse_gtest_json(std::string_view text) {
  const auto document = json::parse(text);
  if (!document) return Error(document.error());
  const json::Value root = document->root();
  if (!root["testsuites"].is(json::Kind::array) || !root["tests"])
    return Error(Errc::invalid_argument, "the JSON has no `tests` and `testsuites`");
  Report report;
  report.listed = report.complete = true;
  for (const json::Value suite : root["testsuites"]) {
    const std::string name = suite["name"].string_or("").substr(0, test_name_bytes_max);
    const std::int64_t tests = stated(suite, "tests", report);
    if (tests != static_cast<std::int64_t>(suite["testsuite"].size()) && report.note.empty())
      report.note = "the suite \"" + preview(name, 80) + "\" states " + std::to_string(tests) + " tests and lists " +
                    std::to_string(suite["testsuite"].size());
    for (const json::Value test : suite["testsuite"]) read_gtest_case(test, name, report);
  }
  // Only the list includes tests that skip themselves; disabled tests are also in the stated counts.
  const std::int64_t failures = stated(root, "failures", report), errors = stated(root, "errors", report);
  const std::int64_t skipped = std::max(stated(root, "disabled", report), report.counts.skipped);
  const std::int64_t tests = stated(root, "tests", report);
  compare_totals(
      report,
      {.total = tests, .passed = tests - failures - errors - skipped, .failed = failures + errors, .skipped = skipped},
      0);
  return report;
}

}  // namespace muniment::evidence::reports
