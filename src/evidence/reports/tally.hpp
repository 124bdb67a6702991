// Counts tests for all formats, and checks the counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/reports/report.hpp"

namespace muniment::evidence::reports {

enum class Outcome : std::uint8_t { passed, failed, skipped };

// Count tests, and keep the names of failed tests in the report. A reader calls keeps_failures before it composes a
// name.
void count_test(Counts& counts, Outcome outcome, std::int64_t number = 1);
inline bool keeps_failures(const Report& report) { return report.failures.size() < failures_kept_max; }
void keep_failure(Report& report, std::string_view name);
void keep_pass(Report& report, std::string_view name);
inline void keep_test(Report& report, Outcome outcome, std::string_view name) {
  if (outcome == Outcome::failed) keep_failure(report, name);
  if (outcome == Outcome::passed) keep_pass(report, name);
}

// `total` is the sum of the other three.
Counts summed(std::int64_t passed, std::int64_t failed, std::int64_t skipped);
Counts& operator+=(Counts& counts, const Counts& more);

// Adds a report of the same run, which another file holds. Reports of tests and of analyses cannot be added.
void add_report(Report& sum, Report more);

// Sets the problem of the report; the first problem is kept.
void note_problem(Report& report, std::string problem);

// Compares the totals that a report states with the tests that it lists, which decide. A difference is a note, because
// the writers of reports count attempts and subtests differently; more failures than the list and its
// `failed_attempts` show are a problem.
void compare_totals(Report& report, const Counts& stated, std::int64_t failed_attempts);

// Checks that no count is negative or above count_max, that the parts of a count add up to its total, and that the
// summary equals the listed tests. Without listed tests, `counts` is set from the summary.
void check_counts(Report& report);

std::string findings_text(const Report& report);  // "1 error, 2 warnings, 1 suppressed"; "0 findings"
std::string text_of(const Counts& counts);        // "12 tests: 10 passed, 1 failed, 1 skipped"

}  // namespace muniment::evidence::reports
