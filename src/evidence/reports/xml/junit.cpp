// Reads JUnit XML, the format of pytest, Maven, ctest, jest and many others. Each testcase element is a test. The
// attributes of a suite give the summary; the counts of a suite include those of its inner suites (PHPUnit) or omit
// them, and in both cases a test counts once. The listed tests decide: a difference of the totals is a note. An
// expected failure (`skipped` of type pytest.xfail) counts as skipped. A test whose failed attempts are listed as
// flakyFailure or flakyError (Surefire) passed at a later attempt.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "evidence/reports/formats.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/tally.hpp"
#include "evidence/reports/xml/suites_xml.hpp"
#include "evidence/reports/xml/xml.hpp"

namespace muniment::evidence::reports {
namespace {

// The counts in a suite's attributes, in the order of `suite_attributes`.
enum SuiteField : std::size_t { tests, failures, errors, skipped, disabled, suite_fields };
constexpr std::array<std::string_view, suite_fields> suite_attributes{"tests", "failures", "errors", "skipped",
                                                                      "disabled"};
using SuiteCounts = std::array<std::optional<std::int64_t>, suite_fields>;

struct OpenSuite {
  std::string name;
  SuiteCounts stated;
  SuiteCounts inner;        // sum of the counts that its direct inner suites state
  std::int64_t direct = 0;  // its direct testcase elements
  std::int64_t all = 0;     // its testcase elements at every depth
};

void add_to(SuiteCounts& sum, const SuiteCounts& more) {
  for (std::size_t i = 0; i < suite_fields; ++i)
    if (more[i]) sum[i] = sum[i].value_or(0) + *more[i];
}

class SuitesReader {
 public:
  explicit SuitesReader(Report& report) : report_(report) {}

  void open(const XmlElement& element, std::size_t depth) {
    if (depth == 1) root_fits_ = element.name == "testsuites" || element.name == "testsuite";
    if (!root_fits_) return;
    if (test_depth_ == 0 && (element.name == "testsuites" || element.name == "testsuite")) return open_suite(element);
    if (test_depth_ == 0 && element.name == "testcase") return open_test(element, depth);
    if (test_depth_ == 0 || depth != test_depth_ + 1) return;
    if (element.name == "failure" || element.name == "error") {
      if (outcome_ == Outcome::failed) ++failed_attempts_;
      outcome_ = Outcome::failed;
    }
    flaky_ = flaky_ || element.name == "flakyFailure" || element.name == "flakyError";
    if (element.name.starts_with("flaky") || element.name.starts_with("rerun")) ++failed_attempts_;
    if (element.name == "skipped" && outcome_ == Outcome::passed) outcome_ = Outcome::skipped;
  }

  void close(std::string_view name, std::size_t depth) {
    if (test_depth_ != 0 && depth == test_depth_) return close_test();
    if (test_depth_ == 0 && !suites_.empty() && (name == "testsuites" || name == "testsuite")) close_suite();
  }

  bool root_fits() const { return root_fits_; }

 private:
  void open_suite(const XmlElement& element) {
    OpenSuite suite;
    suite.name = element.attribute("name").value_or("");
    for (std::size_t i = 0; i < suite_fields; ++i) {
      const auto text = element.attribute(suite_attributes[i]);
      if (!text || text->empty()) continue;
      suite.stated[i] = count_of(*text);
      if (!suite.stated[i])
        note_problem(report_, "the attribute " + std::string(suite_attributes[i]) + " of a suite is not a number");
      else if (*suite.stated[i] < 0 || *suite.stated[i] > count_max)
        note_problem(report_, "a count is negative or above 1,000,000,000");
    }
    suites_.push_back(std::move(suite));
  }

  void open_test(const XmlElement& element, std::size_t depth) {
    test_depth_ = depth;
    flaky_ = false;
    const std::string_view status = element.attribute("status").value_or(""),
                           result = element.attribute("result").value_or("");
    outcome_ = status == "fail" || status == "failed" ? Outcome::failed
               : status == "notrun" || status == "disabled" || status == "skipped" || result == "skipped" ||
                       result == "suppressed"
                   ? Outcome::skipped
                   : Outcome::passed;
    test_name_ = element.attribute("classname").value_or("");
    if (!test_name_.empty()) test_name_ += '.';
    test_name_ += element.attribute("name").value_or("");
  }

  void close_test() {
    test_depth_ = 0;
    count_test(report_.counts, outcome_);
    keep_test(report_, outcome_, test_name_);
    if (outcome_ == Outcome::passed && flaky_) ++report_.flaky;
    if (suites_.empty()) return;
    ++suites_.back().direct;
    ++suites_.back().all;
  }

  void close_suite() {
    OpenSuite suite = std::move(suites_.back());
    suites_.pop_back();
    const auto stated = suite.stated[tests];
    if (stated && *stated == suite.direct && suite.direct != suite.all) {
      add_to(suite.stated, suite.inner);
    } else if (stated && *stated != suite.all && report_.note.empty()) {
      report_.note = "the suite \"" + preview(suite.name, 80) + "\" states " + std::to_string(*stated) +
                     " tests and lists " + std::to_string(suite.all);
    }
    for (std::size_t i = 0; i < suite_fields; ++i)
      if (!suite.stated[i]) suite.stated[i] = suite.inner[i];
    if (!suites_.empty()) {
      suites_.back().all += suite.all;
      add_to(suites_.back().inner, suite.stated);
    } else {
      sum_up(suite.stated);
    }
  }

  // A count that no suite states is set from the list.
  void sum_up(const SuiteCounts& root) {
    report_.complete = true;
    if (!root[tests]) return;
    const Counts& listed = report_.counts;
    const bool states_failed = root[failures] || root[errors], states_skipped = root[skipped] || root[disabled];
    const std::int64_t failed = states_failed ? root[failures].value_or(0) + root[errors].value_or(0) : listed.failed;
    std::int64_t left_out = states_skipped ? root[skipped].value_or(0) + root[disabled].value_or(0) : listed.skipped;
    // `skipped` includes the disabled tests in some writers and excludes them in others.
    if (root[skipped] && root[disabled] && *root[skipped] == listed.skipped) left_out = listed.skipped;
    compare_totals(
        report_,
        {.total = *root[tests], .passed = *root[tests] - failed - left_out, .failed = failed, .skipped = left_out},
        failed_attempts_);
  }

  Report& report_;
  bool root_fits_ = false;
  std::vector<OpenSuite> suites_;
  std::size_t test_depth_ = 0;  // depth of the open testcase; 0: none
  Outcome outcome_ = Outcome::passed;
  std::string test_name_;
  bool flaky_ = false;
  std::int64_t failed_attempts_ = 0;  // failures beyond the first of a test, and those of earlier attempts
};

bool is_suites_tag(std::string_view tag) {
  const std::string_view name = tag.substr(0, tag.find_first_of(" \t\r\n/"));
  return name == "testsuites" || name == "testsuite";
}

}  // namespace

Result<Report> read_suites_xml(std::string_view text) {
  Report report;
  SuitesReader suites(report);
  const XmlReader reader{[&](const XmlElement& element, std::size_t depth) { suites.open(element, depth); },
                         [&](std::string_view name, std::size_t depth) { suites.close(name, depth); }};
  const Status read = read_xml(text, reader);
  if (!read) {
    report.complete = false;
    report.problem = read.error().message;
    report.unreadable = !report.problem.starts_with(truncated_xml);
  }
  if (!suites.root_fits() && read)
    return Error(Errc::invalid_argument, "the root element is neither testsuites nor testsuite");
  report.listed = true;
  return report;
}

bool recognises_junit(std::string_view text) { return is_suites_tag(root_tag(text)); }

Result<Report> parse_junit(std::string_view text) { return read_suites_xml(text); }

}  // namespace muniment::evidence::reports
