// The counting that all formats share, and the checks of the counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/reports/report.hpp"

namespace muniment::evidence::reports {

enum class Outcome : std::uint8_t { passed, failed, skipped };

// Counts tests, and keeps the names of failed ones in the report. A reader that has to make a name asks first whether
// it will be kept.
void count_test(Counts& counts, Outcome outcome, std::int64_t number = 1);
inline bool keeps_failures(const Report& report) { return report.failures.size() < failures_kept_max; }
void keep_failure(Report& report, std::string_view name);

// `total` is the sum of the other three.
Counts summed(std::int64_t passed, std::int64_t failed, std::int64_t skipped);
Counts& operator+=(Counts& counts, const Counts& more);

// The first problem is the one that is reported.
void note_problem(Report& report, std::string problem);

// The checks that hold for every format; a format without listed tests takes its counts from the summary:
// no count is negative or above count_max, the parts of a count make its total, the summary is what is listed.
void check_counts(Report& report);

std::string text_of(const Counts& counts);  // "12 tests: 10 passed, 1 failed, 1 skipped"

}  // namespace muniment::evidence::reports
