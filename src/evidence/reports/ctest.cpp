// Reads the console output of ctest. A test that is disabled, or skips itself, counts as skipped; ctest's own summary
// counts the latter as passed and omits the former. With --repeat the last result of a test counts.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/reports/formats.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

struct CtestLine {
  std::int64_t number = 0;
  std::string_view name;
  Outcome outcome = Outcome::passed;
  bool disabled = false;
};

// "2/6 Test #2: bad ..............................***Failed    0.00 sec"
std::optional<CtestLine> ctest_line(std::string_view line) {
  line = trimmed(line);
  if (const std::size_t slash = line.find('/');
      slash != std::string_view::npos && is_all_of(line.substr(0, slash), "0123456789")) {
    line.remove_prefix(slash + 1);
    if (!take_count(line)) return std::nullopt;
    line = trimmed(line);
  }
  if (!take(line, "Test ")) return std::nullopt;
  line = trimmed(line);
  if (!take(line, "#")) return std::nullopt;
  CtestLine found;
  const auto number = take_count(line);
  const std::size_t dots = line.find(" .");
  if (!number || !take(line, ": ") || dots == std::string_view::npos || !trimmed(line).ends_with(" sec"))
    return std::nullopt;
  found.number = *number;
  found.name = line.substr(0, line.find(" ."));
  const std::size_t stars = line.rfind("***");
  if (stars == std::string_view::npos) {
    if (line.find(" Passed ") == std::string_view::npos) return std::nullopt;
    return found;
  }
  const std::string_view status = line.substr(stars + 3);
  found.disabled = status.starts_with("Not Run (Disabled)");
  found.outcome = found.disabled || status.starts_with("Skipped") ? Outcome::skipped : Outcome::failed;
  return found;
}

struct CtestSummary {
  std::int64_t percent = 0, failed = 0, total = 0;
};

// "40% tests passed, 3 tests failed out of 5"
std::optional<CtestSummary> ctest_summary(std::string_view line) {
  const auto percent = take_count(line);
  if (!percent || !take(line, "% tests passed, ")) return std::nullopt;
  const auto failed = take_count(line);
  if (!failed || !(take(line, " tests failed out of ") || take(line, " test failed out of "))) return std::nullopt;
  const auto total = take_count(line);
  if (!total) return std::nullopt;
  return CtestSummary{.percent = *percent, .failed = *failed, .total = *total};
}

class CtestReader {
 public:
  explicit CtestReader(Report& report) : report_(report) {}

  void read(std::string_view line) {
    if (line.starts_with("Test project ")) {
      if (open_) truncated_ = true;
      end_session();
      open_ = true;
    } else if (const auto test = ctest_line(line)) {
      open_ = true;
      tests_[test->number] = {test->outcome, test->disabled, std::string(test->name.substr(0, test_name_bytes_max))};
    } else if (const auto summary = ctest_summary(line)) {
      close(*summary);
    } else if (line.starts_with("No tests were found!!!")) {
      close({.percent = 100, .failed = 0, .total = 0});
    } else {
      read_unrun(line);
    }
  }

  void finish() {
    end_session();
    report_.complete = closed_ > 0 && !open_ && !truncated_;
    report_.listed = all_listed_ && report_.counts.total > 0;
    if (closed_ > 0) report_.summary = summary_;
  }

 private:
  struct Test {
    Outcome outcome = Outcome::passed;
    bool disabled = false;
    std::string name;
  };

  void close(const CtestSummary& summary) {
    ++closed_;
    open_ = false;
    last_ = summary;
    has_summary_ = true;
  }

  // The list after the summary: "	  4 - off (Disabled)".
  void read_unrun(std::string_view line) {
    if (!has_summary_ || !line.starts_with('\t')) {
      if (!trimmed(line).empty()) in_unrun_ = has_summary_ && line == "The following tests did not run:";
      return;
    }
    if (!in_unrun_) return;
    if (line.ends_with("(Disabled)")) ++disabled_;
    if (line.ends_with("(Skipped)")) ++skipped_;
  }

  void end_session() {
    Counts listed;
    std::int64_t listed_disabled = 0;
    for (const auto& [number, test] : tests_) {
      count_test(listed, test.outcome);
      listed_disabled += test.disabled ? 1 : 0;
      keep_test(report_, test.outcome, test.name);
    }
    report_.counts += listed;
    if (has_summary_) {
      const std::int64_t percent = last_.total > 0 ? 100 * (last_.total - last_.failed) / last_.total : 100;
      if (last_.total > 0 && (last_.percent < percent - 1 || last_.percent > percent + 1))
        note_problem(report_, "the summary states " + std::to_string(last_.percent) + "% passed with " +
                                  std::to_string(last_.failed) + " of " + std::to_string(last_.total) +
                                  " tests failed");
      // A filter may have removed the list of skipped tests; the test lines then give the number of disabled tests.
      const std::int64_t disabled = std::max(disabled_, listed_disabled);
      const std::int64_t skipped = std::max(skipped_, listed.skipped - listed_disabled) + disabled;
      summary_ += summed(last_.total + disabled - last_.failed - skipped, last_.failed, skipped);
      if (tests_.empty() && last_.total > 0) all_listed_ = false;
    }
    tests_.clear();
    has_summary_ = in_unrun_ = false;
    disabled_ = skipped_ = 0;
  }

  Report& report_;
  std::map<std::int64_t, Test> tests_;
  CtestSummary last_;
  bool open_ = false, has_summary_ = false, truncated_ = false, all_listed_ = true;
  bool in_unrun_ = false;
  std::int64_t closed_ = 0, disabled_ = 0, skipped_ = 0;
  Counts summary_;
};

}  // namespace

bool recognises_ctest(std::string_view text) {
  return any_line(text, [](std::string_view line) {
    return ctest_line(line) || ctest_summary(line) || line.starts_with("Test project /") ||
           line.starts_with("No tests were found!!!");
  });
}

Result<Report> parse_ctest(std::string_view text) {
  Report report;
  CtestReader reader(report);
  Lines lines(text);
  while (const auto line = lines.next()) reader.read(*line);
  reader.finish();
  return report;
}

}  // namespace muniment::evidence::reports
