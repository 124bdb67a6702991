// Counts tests and checks the counts of a report.
#include "evidence/reports/tally.hpp"

#include <utility>

#include "base/text.hpp"
#include "evidence/reports/lines.hpp"

namespace muniment::evidence::reports {
namespace {

bool out_of_range(std::int64_t count) { return count < 0 || count > count_max; }

bool out_of_range(const Counts& counts) {
  return out_of_range(counts.total) || out_of_range(counts.passed) || out_of_range(counts.failed) ||
         out_of_range(counts.skipped);
}

bool adds_up(const Counts& counts) { return counts.total == counts.passed + counts.failed + counts.skipped; }

}  // namespace

void count_test(Counts& counts, Outcome outcome, std::int64_t number) {
  counts.total += number;
  if (outcome == Outcome::passed) counts.passed += number;
  if (outcome == Outcome::failed) counts.failed += number;
  if (outcome == Outcome::skipped) counts.skipped += number;
}

void keep_failure(Report& report, std::string_view name) {
  if (keeps_failures(report)) report.failures.push_back(preview(name, test_name_bytes_max));
}

void keep_pass(Report& report, std::string_view name) {
  if (report.passes.size() < passes_kept_max) report.passes.push_back(preview(name, test_name_bytes_max));
}

bool names_passes(const Report& report) {
  return !report.passes.empty() && std::cmp_equal(report.passes.size(), report.counts.passed);
}

Counts summed(std::int64_t passed, std::int64_t failed, std::int64_t skipped) {
  return {.total = passed + failed + skipped, .passed = passed, .failed = failed, .skipped = skipped};
}

Counts& operator+=(Counts& counts, const Counts& more) {
  counts.total += more.total;
  counts.passed += more.passed;
  counts.failed += more.failed;
  counts.skipped += more.skipped;
  return counts;
}

void add_report(Report& sum, Report more) {
  if (sum.analysis != more.analysis)
    note_problem(more, "the files are reports of tests and of an analysis. Record two pieces of evidence");
  if (sum.format != more.format) sum.format = "several";
  sum.counts += more.counts;
  if (sum.summary && more.summary)
    *sum.summary += *more.summary;
  else
    sum.summary.reset();
  sum.listed = sum.listed && more.listed;
  sum.complete = sum.complete && more.complete;
  for (const std::string& name : more.failures) keep_failure(sum, name);
  for (std::string& name : more.passes) {
    if (sum.passes.size() < passes_kept_max) sum.passes.push_back(std::move(name));
  }
  if (!more.problem.empty()) note_problem(sum, std::move(more.problem));
  if (sum.note.empty()) sum.note = std::move(more.note);
  sum.warnings += more.warnings;
  sum.flaky += more.flaky;
  sum.deselected += more.deselected;
  sum.packages += more.packages;
  sum.unreadable = sum.unreadable || more.unreadable;
}

void note_problem(Report& report, std::string problem) {
  if (report.problem.empty()) report.problem = std::move(problem);
}

void compare_totals(Report& report, const Counts& stated, std::int64_t failed_attempts) {
  report.summary = stated;
  if (stated == report.counts || out_of_range(stated)) return;
  report.summary.reset();
  if (stated.failed > report.counts.failed + failed_attempts)
    return note_problem(report, "its totals state " + std::to_string(stated.failed) + " failed tests, and it lists " +
                                    std::to_string(report.counts.failed));
  if (report.note.empty())
    report.note = "the totals of the report state " + text_of(stated) + "; it lists " + text_of(report.counts);
}

void check_counts(Report& report) {
  if (!report.listed && report.summary) report.counts = *report.summary;
  if (out_of_range(report.counts) || (report.summary && out_of_range(*report.summary))) {
    note_problem(report, "a count is negative or above 1,000,000,000");
    return;
  }
  if (report.summary && !adds_up(*report.summary))
    note_problem(report, "the summary does not add up: " + text_of(*report.summary));
  if (report.listed && report.summary && *report.summary != report.counts)
    note_problem(report, "the summary is " + text_of(*report.summary) + "; the report lists " + text_of(report.counts));
  if (!report.complete) note_problem(report, "the report is truncated: its end is missing");
}

std::string findings_text(const Report& report) {
  const std::pair<std::int64_t, std::string_view> parts[] = {
      {report.counts.failed, "error"}, {report.warnings, "warning"}, {report.counts.passed - report.warnings, "note"}};
  std::string text;
  for (const auto& [count, name] : parts) {
    if (count <= 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(name) + (count == 1 ? "" : "s");
  }
  if (text.empty()) text = "0 findings";
  return report.counts.skipped > 0 ? text + ", " + std::to_string(report.counts.skipped) + " suppressed" : text;
}

std::string text_of(const Counts& counts) {
  return std::to_string(counts.total) + (counts.total == 1 ? " test: " : " tests: ") + std::to_string(counts.passed) +
         " passed, " + std::to_string(counts.failed) + " failed, " + std::to_string(counts.skipped) + " skipped";
}

}  // namespace muniment::evidence::reports
