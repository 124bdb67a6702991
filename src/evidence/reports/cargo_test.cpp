// Reads the console output of `cargo test`: one suite for each test binary, and one for the documentation's examples.
// Their counts are added. A measured benchmark counts as passed; a filtered-out test is deselected.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/reports/formats.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

struct CargoSummary {
  Counts counts;
  std::int64_t filtered = 0;
  bool ok = false;
};

// "test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.13s"
std::optional<CargoSummary> cargo_summary(std::string_view line) {
  if (!take(line, "test result: ")) return std::nullopt;
  CargoSummary summary;
  summary.ok = take(line, "ok. ");
  if (!summary.ok && !take(line, "FAILED. ")) return std::nullopt;
  const auto passed = take_count(line);
  if (!passed || !take(line, " passed; ")) return std::nullopt;
  const auto failed = take_count(line);
  if (!failed || !take(line, " failed; ")) return std::nullopt;
  const auto ignored = take_count(line);
  if (!ignored || !take(line, " ignored; ")) return std::nullopt;
  const auto measured = take_count(line);
  if (!measured || !take(line, " measured; ")) return std::nullopt;
  summary.counts = summed(*passed + *measured, *failed, *ignored);
  summary.filtered = take_count(line).value_or(0);
  return summary;
}

// "running 5 tests"
std::optional<std::int64_t> announced(std::string_view line) {
  if (!take(line, "running ")) return std::nullopt;
  const auto count = take_count(line);
  return line == " tests" || line == " test" ? count : std::nullopt;
}

struct CargoTestLine {
  std::string_view name;
  std::optional<Outcome> outcome;  // nullopt: the test's own output follows its name
};

// "test tests::adds ... ok"
std::optional<CargoTestLine> cargo_test_line(std::string_view line) {
  if (!take(line, "test ")) return std::nullopt;
  const std::size_t dots = line.find(" ... ");
  if (dots == std::string_view::npos) return std::nullopt;
  CargoTestLine found{.name = line.substr(0, dots), .outcome = std::nullopt};
  const std::string_view result = trimmed(line.substr(dots + 5));
  if (result == "ok" || result.starts_with("ok <") || result.starts_with("bench: ")) found.outcome = Outcome::passed;
  if (result == "FAILED" || result.starts_with("FAILED <")) found.outcome = Outcome::failed;
  if (result == "ignored" || result.starts_with("ignored, ")) found.outcome = Outcome::skipped;
  return found;
}

class CargoReader {
 public:
  explicit CargoReader(Report& report) : report_(report) {}

  void read(std::string_view line) {
    if (const auto count = announced(line)) {
      if (open_) truncated_ = true;
      begin_suite(*count);
    } else if (const auto test = cargo_test_line(line)) {
      if (!test->outcome)
        clean_ = false;
      else
        count_test(suite_, *test->outcome);
      if (test->outcome) keep_test(report_, *test->outcome, test->name);
    } else if (const auto summary = cargo_summary(line)) {
      close(*summary);
    }
  }

  void finish() {
    report_.complete = closed_ > 0 && !open_ && !truncated_;
    report_.listed = all_listed_ && listed_.total > 0;
    if (closed_ > 0) report_.summary = summary_;
    report_.counts = report_.listed || closed_ == 0 ? listed_ : summary_;
    if (closed_ == 0) report_.counts = suite_;
  }

 private:
  void begin_suite(std::int64_t count) {
    open_ = clean_ = true;
    announced_ = count;
    suite_ = {};
  }

  void close(const CargoSummary& summary) {
    ++closed_;
    summary_ += summary.counts;
    report_.deselected += summary.filtered;
    listed_ += suite_;
    if (summary.ok != (summary.counts.failed == 0))
      note_problem(report_, std::string("the result of a suite is ") + (summary.ok ? "ok" : "FAILED") +
                                ", and its summary is " + text_of(summary.counts));
    if (open_ && announced_ != summary.counts.total)
      note_problem(report_, "a suite announces " + std::to_string(announced_) + " tests, and its summary is " +
                                text_of(summary.counts));
    if (open_ && clean_ && suite_.total > 0 && suite_ != summary.counts)
      note_problem(report_, "a suite lists " + text_of(suite_) + "; its summary is " + text_of(summary.counts));
    if (suite_ != summary.counts) all_listed_ = false;
    open_ = false;
    suite_ = {};
  }

  Report& report_;
  bool open_ = false;  // the suite's result is pending
  bool clean_ = true;  // each listed test of the suite has its result on the same line
  bool truncated_ = false, all_listed_ = true;
  std::int64_t announced_ = 0, closed_ = 0;
  Counts suite_, listed_, summary_;
};

}  // namespace

bool recognises_cargo_test(std::string_view text) {
  return any_line(text, [](std::string_view line) {
    if (line.starts_with("test result: ") || announced(line)) return true;
    const auto test = cargo_test_line(line);
    return test && test->outcome;
  });
}

Result<Report> parse_cargo_test(std::string_view text) {
  Report report;
  CargoReader reader(report);
  Lines lines(text);
  while (const auto line = lines.next()) reader.read(*line);
  reader.finish();
  return report;
}

}  // namespace muniment::evidence::reports
