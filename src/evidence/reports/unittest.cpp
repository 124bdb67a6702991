// Reads the console output of Python's unittest and of runners built on it, such as Django's. "Ran N tests" counts each
// method that ran; a failure in a subtest, or an error in the setup of a class, is an additional failure. An expected
// failure counts as skipped, like pytest's xfail; an unexpected success counts as failed, as in unittest.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/reports/formats.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

// "Ran 12 tests in 0.003s"
std::optional<std::int64_t> ran_line(std::string_view line) {
  if (!take(line, "Ran ")) return std::nullopt;
  const auto count = take_count(line);
  if (!count || !(take(line, " tests in ") || take(line, " test in ")) || !line.ends_with('s')) return std::nullopt;
  return is_all_of(line.substr(0, line.size() - 1), "0123456789.") ? count : std::nullopt;
}

struct UnittestStatus {
  bool ok = false;
  std::int64_t failed = 0;   // failures, errors and unexpected successes
  std::int64_t skipped = 0;  // skipped tests and expected failures
};

void add_status_part(UnittestStatus& status, std::string_view name, std::int64_t count) {
  if (name == "failures" || name == "errors" || name == "unexpected successes") status.failed += count;
  if (name == "skipped" || name == "SKIP" || name == "expected failures") status.skipped += count;
}

// "FAILED (failures=2, errors=30, skipped=1, expected failures=1)"
std::optional<UnittestStatus> status_line(std::string_view line) {
  UnittestStatus status;
  line = trimmed(line);
  status.ok = take(line, "OK") || take(line, "NO TESTS RAN");
  if (!status.ok && !take(line, "FAILED")) return std::nullopt;
  if (line.empty()) return status;
  if (!take(line, " (") || !line.ends_with(')')) return std::nullopt;
  line.remove_suffix(1);
  while (!line.empty()) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = line.substr(0, equals);
    line.remove_prefix(equals + 1);
    const auto count = take_count(line);
    if (!count) return std::nullopt;
    add_status_part(status, name, *count);
    if (!line.empty() && !take(line, ", ")) return std::nullopt;
  }
  return status;
}

// "test_a (mod.Case.test_a) ... ok"; the outcome is unknown if other text precedes it.
struct UnittestLine {
  std::string_view name;
  std::optional<Outcome> outcome;
};

std::optional<UnittestLine> unittest_line(std::string_view line) {
  const std::size_t dots = line.find(" ... ");
  if (dots == std::string_view::npos) return std::nullopt;
  UnittestLine found{.name = trimmed(line.substr(0, dots)), .outcome = std::nullopt};
  const std::string_view result = trimmed(line.substr(dots + 5));
  if (result == "ok") found.outcome = Outcome::passed;
  if (result == "FAIL" || result == "ERROR" || result == "unexpected success") found.outcome = Outcome::failed;
  if (result == "expected failure" || result.starts_with("skipped ")) found.outcome = Outcome::skipped;
  return found;
}

class UnittestReader {
 public:
  explicit UnittestReader(Report& report) : report_(report) {}

  void read(std::string_view line) {
    if (const auto ran = ran_line(line)) {
      if (ran_) truncated_ = true;
      ran_ = ran;
    } else if (ran_) {
      if (const auto status = status_line(line)) close(*status);
    } else {
      read_test(line);
    }
  }

  void finish() {
    report_.complete = closed_ > 0 && !ran_ && !truncated_;
    report_.listed = all_listed_ && listed_sum_.total > 0;
    if (closed_ > 0) report_.summary = summary_;
    report_.counts = closed_ == 0 ? listed_ : report_.listed ? listed_sum_ : summary_;
  }

 private:
  void read_test(std::string_view line) {
    if (line.starts_with("FAIL: ") || line.starts_with("ERROR: ")) {
      if (!ruled_) return;
      ++headings_;
      keep_failure(report_, line.substr(line.find(' ') + 1));
    } else if (const auto test = unittest_line(line)) {
      if (test->outcome)
        count_test(listed_, *test->outcome);
      else
        clean_ = false;
      // The second line of a test with a docstring has that instead of the name.
      if (test->outcome == Outcome::passed && test->name.ends_with(')')) keep_pass(report_, test->name);
    } else if (headings_ == 0 && listed_.total == 0 && is_all_of(line, ".FEsxu")) {
      dots_ += std::count(line.begin(), line.end(), '.');
    }
    ruled_ = line.size() >= 70 && is_all_of(line, "=");
  }

  void close(const UnittestStatus& status) {
    ++closed_;
    // The methods that ran, without those in another count. The counts include failed and skipped setups of classes,
    // which are not methods that ran.
    const std::int64_t passed = std::max<std::int64_t>(*ran_ - status.failed - status.skipped, 0);
    Counts counts = summed(*ran_ < 0 ? *ran_ : passed, status.failed, status.skipped);
    summary_ += counts;
    if (status.ok == (status.failed > 0))
      note_problem(report_, std::string("the run ended with ") + (status.ok ? "OK" : "FAILED") +
                                ", and its counts are " + text_of(counts));
    if (headings_ > status.failed)
      note_problem(report_, "the report shows " + std::to_string(headings_) + " failures, and its counts are " +
                                text_of(counts));
    if (dots_ > counts.passed && status.failed == 0)
      note_problem(report_, "the progress shows " + std::to_string(dots_) + " passed tests, and the counts are " +
                                text_of(counts));
    // If a test failed or was skipped, subtests and setups make the list differ from the counts; both include the
    // passed
    // tests.
    const bool is_list = clean_ && listed_.total > 0;
    if (is_list && listed_.total != *ran_ && status.failed == 0 && status.skipped == 0)
      note_problem(report_, "the report lists " + text_of(listed_) + "; its counts are " + text_of(counts));
    if (is_list && listed_ == counts)
      listed_sum_ += listed_;
    else
      all_listed_ = false;
    ran_.reset();
    listed_ = {};
    dots_ = headings_ = 0;
    clean_ = true;
    ruled_ = false;
  }

  Report& report_;
  std::optional<std::int64_t> ran_;  // set until the status line is read
  bool clean_ = true, truncated_ = false, all_listed_ = true;
  bool ruled_ = false;  // the previous line is a rule; a heading may follow
  std::int64_t closed_ = 0, dots_ = 0, headings_ = 0;
  Counts listed_, listed_sum_, summary_;
};

}  // namespace

bool recognises_unittest(std::string_view text) {
  return any_line(text, [](std::string_view line) {
    if (ran_line(line)) return true;
    if (!line.starts_with("test") || line.find(" (") == std::string_view::npos) return false;
    const auto test = unittest_line(line);
    return test && test->outcome && test->name.ends_with(')');
  });
}

Result<Report> parse_unittest(std::string_view text) {
  Report report;
  UnittestReader reader(report);
  Lines lines(text);
  while (const auto line = lines.next()) reader.read(*line);
  reader.finish();
  return report;
}

}  // namespace muniment::evidence::reports
