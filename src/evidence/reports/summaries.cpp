// Reads the counts at the end of the console output of runners that have no reader of their own: one row for each line
// of counts. The lines name no tests, except for those of Gradle.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "evidence/reports/formats.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

enum class Noun : std::uint8_t { none, total, passed, failed, skipped, deselected, flaky, broken };
constexpr std::size_t nouns = 8;
using SummaryNumbers = std::array<std::optional<std::int64_t>, nouns>;

enum class Use : std::uint8_t {
  start,  // a run begins: without a later line of counts, it did not end
  run,    // the counts of one run; those of several runs are added
  last,   // the counts of one run, which replace those of its parts before
  more,   // further counts of the run
  part,   // the counts of a part of the run, which the runner sums up later
};

struct SummaryRow {
  std::string_view format;  // two names, if two runners print further counts in the same way
  // The beginning of the line. {t}, {p}, {f}, {s} and {d} stand for a number of tests, and that of the passed, failed,
  // skipped and deselected tests, {b} for one of files or suites that are broken; a blank stands for several blanks.
  std::string_view begins;
  std::string_view contains;  // what follows; empty: anything
  Use use = Use::run;
  bool name_first = false;  // "Failures: 1", rather than "1 failure"
};

constexpr std::array summary_rows{
    SummaryRow{"jest", "Test Suites: {b} failed,", " total", Use::more},
    SummaryRow{"jest", "Tests: ", " total"},
    SummaryRow{"jest", "No tests found, exiting with code ", ""},
    SummaryRow{"vitest", "Test Files {b} failed", "(", Use::more},
    SummaryRow{"vitest", "Errors {b} error", "", Use::more},
    SummaryRow{"vitest", "Tests {p} passed", "("},
    SummaryRow{"vitest", "Tests {f} failed", "("},
    SummaryRow{"vitest", "Tests {s} skipped", "("},
    SummaryRow{"vitest", "Tests {s} todo", "("},
    SummaryRow{"vitest", "No test files found, exiting with code ", ""},
    SummaryRow{"pytest_sugar", "Results (", "s):"},
    SummaryRow{"pytest_sugar", "{p} passed", "", Use::more},
    SummaryRow{"pytest_sugar", "{p} xpassed", "", Use::more},
    SummaryRow{"pytest_sugar", "{f} failed", "", Use::more},
    SummaryRow{"pytest_sugar", "{f} error", "", Use::more},
    SummaryRow{"pytest_sugar", "{s} skipped", "", Use::more},
    SummaryRow{"pytest_sugar", "{s} xfailed", "", Use::more},
    SummaryRow{"pytest_sugar", "{d} deselected", "", Use::more},
    SummaryRow{"mocha", "{p} passing", "("},
    SummaryRow{"mocha", "{s} pending", "", Use::more},
    SummaryRow{"mocha", "{f} failing", "", Use::more},
    SummaryRow{"nextest", "Summary [", " run: "},
    SummaryRow{"rspec", "{t} example", " failure"},
    SummaryRow{"minitest", "{t} runs, ", " assertions, "},
    SummaryRow{"test_unit", "{t} tests, ", " assertions, "},
    SummaryRow{"robot", "{t} test", " passed, ", Use::last},
    SummaryRow{"exunit", "{t} test", " failure"},
    SummaryRow{"exunit", "{t} doctest", " failure"},
    SummaryRow{"exunit", "{t} propert", " failure"},
    SummaryRow{"exunit", "There are no tests to run", ""},
    SummaryRow{"behave", "{p} scenarios passed, ", " failed"},
    SummaryRow{"behave", "{p} scenario passed, ", " failed"},
    SummaryRow{"cucumber", "{t} scenario", "("},
    SummaryRow{"phpunit", "OK ({t} test", "assertion"},
    SummaryRow{"phpunit", "Tests: {t}, ", "Assertions: ", Use::run, true},
    SummaryRow{"phpunit", "No tests executed!", ""},
    SummaryRow{"junit_console", "OK ({t} test", ""},
    SummaryRow{"dotnet", "Passed! - Failed: {f}, ", "Total:", Use::run, true},
    SummaryRow{"dotnet", "Failed! - Failed: {f}, ", "Total:", Use::run, true},
    SummaryRow{"dotnet", "Skipped! - Failed: {f}, ", "Total:", Use::run, true},
    SummaryRow{"dotnet", "Test summary: total: {t}", "", Use::run, true},
    SummaryRow{"dotnet", "Test run summary: ", ""},
    SummaryRow{"dotnet", "total: {t}", "", Use::more},
    SummaryRow{"dotnet", "failed: {f}", "", Use::more},
    SummaryRow{"dotnet", "succeeded: {p}", "", Use::more},
    SummaryRow{"dotnet", "skipped: {s}", "", Use::more},
    SummaryRow{"dotnet", "Total tests: {t}", ""},
    SummaryRow{"dotnet", "Passed: {p}", "", Use::more},
    SummaryRow{"dotnet", "Failed: {f}", "", Use::more},
    SummaryRow{"dotnet meson", "Skipped: {s}", "", Use::more},
    SummaryRow{"dotnet", "No test is available ", ""},
    SummaryRow{"surefire", "Tests run: {t}, ", "Time elapsed", Use::part, true},
    SummaryRow{"surefire", "Tests run: {t}, ", "Failures: ", Use::run, true},
    SummaryRow{"sbt", "Passed: Total {t}, ", "Failed ", Use::run, true},
    SummaryRow{"sbt", "Failed: Total {t}, ", "Failed ", Use::run, true},
    SummaryRow{"gradle", "{t} test completed, ", ""},
    SummaryRow{"gradle", "{t} tests completed, ", ""},
    SummaryRow{"xctest", "Executed {t} test", " failure", Use::last},
    SummaryRow{"swift_testing", "Test run with {t} test", " passed after "},
    SummaryRow{"swift_testing", "Test run with {t} test", " failed after "},
    SummaryRow{"gtest", "[==========] Running ", " test", Use::start},
    SummaryRow{"gtest", "[==========] {t} test", " ran."},
    SummaryRow{"gtest", "[ PASSED ] {p} test", "", Use::more},
    SummaryRow{"gtest", "[ SKIPPED ] {s} test", ", listed below", Use::more},
    SummaryRow{"gtest", "[ FAILED ] {f} test", ", listed below", Use::more},
    SummaryRow{"gtest", "YOU HAVE {d} DISABLED TEST", "", Use::more},
    SummaryRow{"meson", "Ok: {p}", ""},
    SummaryRow{"meson", "Expected Fail: {s}", "", Use::more},
    SummaryRow{"meson", "Fail: {f}", "", Use::more},
    SummaryRow{"meson", "Unexpected Pass: {f}", "", Use::more},
    SummaryRow{"meson", "Timeout: {f}", "", Use::more},
    SummaryRow{"deno", "ok | {p} passed", " | "},
    SummaryRow{"deno", "FAILED | {p} passed", " | "},
};

// The words of counts, in lower case.
struct CountWord {
  std::string_view word;
  Noun noun;
};
constexpr std::array count_words{CountWord{"total", Noun::total},        CountWord{"flakes", Noun::flaky},
                                 CountWord{"passed", Noun::passed},      CountWord{"succeeded", Noun::passed},
                                 CountWord{"failed", Noun::failed},      CountWord{"failure", Noun::failed},
                                 CountWord{"failures", Noun::failed},    CountWord{"error", Noun::failed},
                                 CountWord{"errors", Noun::failed},      CountWord{"timed", Noun::failed},
                                 CountWord{"exec", Noun::failed},        CountWord{"invalid", Noun::failed},
                                 CountWord{"undefined", Noun::failed},   CountWord{"issue", Noun::failed},
                                 CountWord{"issues", Noun::failed},      CountWord{"skipped", Noun::skipped},
                                 CountWord{"skips", Noun::skipped},      CountWord{"pending", Noun::skipped},
                                 CountWord{"pendings", Noun::skipped},   CountWord{"todo", Noun::skipped},
                                 CountWord{"ignored", Noun::skipped},    CountWord{"incomplete", Noun::skipped},
                                 CountWord{"omissions", Noun::skipped},  CountWord{"excluded", Noun::deselected},
                                 CountWord{"filtered", Noun::deselected}};

bool starts_with_digit(std::string_view text) { return !text.empty() && text[0] >= '0' && text[0] <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Noun noun_of_letter(char letter) {
  switch (letter) {
    case 't': return Noun::total;
    case 'p': return Noun::passed;
    case 'f': return Noun::failed;
    case 's': return Noun::skipped;
    case 'd': return Noun::deselected;
    default: return Noun::broken;
  }
}

Noun noun_of_word(std::string_view word) {
  for (const CountWord& row : count_words) {
    const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b; };
    if (std::equal(word.begin(), word.end(), row.word.begin(), row.word.end(), same)) return row.noun;
  }
  return Noun::none;
}

void add_number(SummaryNumbers& numbers, Noun noun, std::int64_t count) {
  if (noun == Noun::none) return;
  auto& number = numbers[static_cast<std::size_t>(noun)];
  number = std::min(number.value_or(0) + count, count_max + 1);
}

// Removes the beginning of the line; returns false if it does not match.
bool take_pattern(std::string_view& line, std::string_view pattern, SummaryNumbers& numbers) {
  std::string_view rest = line;
  while (!pattern.empty()) {
    if (pattern[0] == ' ') {
      const std::size_t blanks = std::min(rest.find_first_not_of(" \t"), rest.size());
      if (blanks == 0) return false;
      rest.remove_prefix(blanks);
      pattern.remove_prefix(1);
    } else if (pattern[0] == '{') {
      if (rest.empty() || !starts_with_digit(rest)) return false;
      add_number(numbers, noun_of_letter(pattern[1]), *take_count(rest));
      pattern.remove_prefix(3);
    } else {
      if (rest.empty() || rest[0] != pattern[0]) return false;
      rest.remove_prefix(1);
      pattern.remove_prefix(1);
    }
  }
  line = rest;
  return true;
}

// "Errors: 1", "Failed 0": the last word before the number.
void read_name_first(std::string_view part, SummaryNumbers& numbers) {
  const std::size_t number = part.find_first_of("0123456789");
  if (number == std::string_view::npos) return;
  std::string_view count = part.substr(number);
  std::size_t end = number;
  while (end > 0 && !is_letter(part[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_letter(part[begin - 1])) --begin;
  const auto value = count_of(trimmed(count));
  if (value) add_number(numbers, noun_of_word(part.substr(begin, end - begin)), *value);
}

// "1 failed", "with 1 test skipped": the word after the number, or after "tests". "0.3s" is no number of tests.
void read_number_first(std::string_view part, SummaryNumbers& numbers) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (!starts_with_digit(part.substr(i)) || (i > 0 && part[i - 1] != ' ')) continue;
    std::string_view rest = part.substr(i);
    const auto count = take_count(rest);
    if (!rest.starts_with(' ')) continue;
    rest = trimmed(rest);
    const bool tests = take(rest, "tests") || take(rest, "test");
    if (tests && (rest.empty() || rest == " run")) return add_number(numbers, Noun::total, *count);
    rest = trimmed(rest);
    std::string_view word = first_word(rest);
    if (word.ends_with('.')) word.remove_suffix(1);
    if (const Noun noun = noun_of_word(word); noun != Noun::none) return add_number(numbers, noun, *count);
  }
}

void read_counts(std::string_view rest, bool name_first, SummaryNumbers& numbers) {
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find_first_of(name_first ? ",.-" : ",|:();"), rest.size());
    if (!name_first) end = std::min(end, rest.find(" and "));
    const std::string_view part = rest.substr(0, end);
    if (name_first)
      read_name_first(part, numbers);
    else
      read_number_first(part, numbers);
    rest.remove_prefix(std::min(end + (rest.substr(end).starts_with(" and ") ? 4 : 1), rest.size()));
  }
}

// "[INFO] ", "[ERROR] ", "[info] ", "✔ ", "✘ "
std::string_view without_level(std::string_view line) {
  line = trimmed(line);
  for (const std::string_view mark : {"[INFO] ", "[ERROR] ", "[WARNING] ", "[info] ", "[error] ", "✔ ", "✘ "})
    if (take(line, mark)) return trimmed(line);
  return line;
}

struct SummaryLine {
  const SummaryRow* row;
  SummaryNumbers numbers;
};

std::optional<SummaryLine> summary_line(std::string_view line) {
  line = without_level(line);
  constexpr std::string_view first = "0123456789[TESOPNFUYRotfs";
  if (line.empty() || first.find(line[0]) == std::string_view::npos) return std::nullopt;
  for (const SummaryRow& row : summary_rows) {
    if (row.begins[0] != '{' && row.begins[0] != line[0]) continue;
    std::string_view rest = line;
    SummaryLine found{&row, {}};
    if (!take_pattern(rest, row.begins, found.numbers) || rest.find(row.contains) == std::string_view::npos) continue;
    if (row.use == Use::run || row.use == Use::last || row.use == Use::part)
      read_counts(rest, row.name_first, found.numbers);
    return found;
  }
  return std::nullopt;
}

// "CalcTest > adds() PASSED"
std::optional<Outcome> gradle_test(std::string_view line) {
  if (line.find(" > ") == std::string_view::npos) return std::nullopt;
  if (line.ends_with(" PASSED")) return Outcome::passed;
  if (line.ends_with(" FAILED")) return Outcome::failed;
  if (line.ends_with(" SKIPPED")) return Outcome::skipped;
  return std::nullopt;
}

bool is_end_of_gradle(std::string_view line) {
  return line.starts_with("BUILD SUCCESSFUL in ") || line.starts_with("BUILD FAILED in ");
}

bool is_meson(const SummaryRow& row) { return row.format == "meson"; }

std::int64_t number_of(const SummaryNumbers& numbers, Noun noun) {
  return numbers[static_cast<std::size_t>(noun)].value_or(0);
}

class SummaryReader {
 public:
  explicit SummaryReader(Report& report) : report_(report) {}

  void read(std::string_view line) {
    if (const auto outcome = gradle_test(line)) {
      count_test(gradle_, *outcome);
      keep_test(report_, *outcome, line.substr(0, line.rfind(' ')));
    } else if (is_end_of_gradle(line) && gradle_.total > 0) {
      if (report_.format.empty()) report_.format = "gradle";
      if (!open_) summary_ += gradle_;
      ++runs_;
    } else if (const auto found = summary_line(line)) {
      take_line(*found);
    } else if (line.starts_with("[  ") && line.ends_with(" ms)")) {
      take_gtest(line);
    }
  }

  void finish() {
    close();
    report_.complete = runs_ > 0 && !started_;
    report_.counts = summary_;
    if (runs_ > 0) report_.summary = summary_;
    report_.deselected = deselected_;
    // A class of Surefire that repeats its failed tests states each attempt.
    if (parts_ > 0 && stated_ > 0 && report_.flaky == 0 && parts_ != stated_)
      note_problem(report_,
                   "it lists " + std::to_string(parts_) + " tests, the summary states " + std::to_string(stated_));
  }

 private:
  // "[       OK ] Sum.Adds (0 ms)"
  void take_gtest(std::string_view line) {
    ++parts_;
    parts_format_ = "gtest";
    const bool failed = take(line, "[  FAILED  ] ");
    if (failed || take(line, "[       OK ] "))
      keep_test(report_, failed ? Outcome::failed : Outcome::passed, line.substr(0, line.rfind(" (")));
  }

  void take_line(const SummaryLine& found) {
    const SummaryRow& row = *found.row;
    if (row.use == Use::more) {
      ++more_lines_;
      const bool follows = open_ != nullptr && row.format.find(open_->format) != std::string_view::npos;
      SummaryNumbers& into = follows ? numbers_ : before_;
      if (!follows && before_format_ != row.format) before_ = {};
      before_format_ = follows ? std::string_view() : row.format;
      for (std::size_t i = 0; i < nouns; ++i) {
        if (found.numbers[i]) add_number(into, static_cast<Noun>(i), *found.numbers[i]);
      }
      return;
    }
    if (row.use == Use::start) {
      close();
      started_ = true;
      report_.format = row.format;
      return;
    }
    if (row.use == Use::part) {
      parts_ += number_of(found.numbers, Noun::total);
      parts_format_ = row.format;
      return;
    }
    if (row.use == Use::last && open_ == found.row) open_ = nullptr;
    close();
    open_ = found.row;
    numbers_ = found.numbers;
    started_ = false;
    more_lines_ = 0;
    // Jest states the broken suites before the tests.
    if (before_format_ == row.format) add_number(numbers_, Noun::broken, number_of(before_, Noun::broken));
    before_ = {};
  }

  // Adds the counts of the open run. A total that is not stated is the sum of the parts; passed tests that are not
  // stated are the rest of the total.
  void close() {
    if (open_ == nullptr) return;
    if (is_meson(*open_) && more_lines_ == 0) {  // "Ok: 3" may be any output
      open_ = nullptr;
      return;
    }
    report_.format = open_->format;
    const bool states_total = numbers_[static_cast<std::size_t>(Noun::total)].has_value();
    const bool states_passed = numbers_[static_cast<std::size_t>(Noun::passed)].has_value();
    std::int64_t deselected = number_of(numbers_, Noun::deselected);
    std::int64_t failed = number_of(numbers_, Noun::failed), total = number_of(numbers_, Noun::total);
    const std::int64_t skipped = number_of(numbers_, Noun::skipped);
    // ExUnit counts excluded tests in its total.
    if (states_total && open_->format == "exunit") total -= deselected;
    // Nextest states what it left out apart from the tests that it ran.
    if (open_->format == "nextest") deselected += skipped;
    if (open_->format == "swift_testing") failed = std::min(failed, total);
    if (failed == 0) {
      failed = number_of(numbers_, Noun::broken);
      total += states_total ? failed : 0;
    }
    Counts counts = summed(number_of(numbers_, Noun::passed), failed, open_->format == "nextest" ? 0 : skipped);
    if (states_total) {
      if (!states_passed) total = std::max(total, failed + counts.skipped);  // errors outside of tests
      if (!states_passed) counts.passed = std::max<std::int64_t>(total - failed - counts.skipped, 0);
      counts.total = total;
    }
    summary_ += counts;
    if (open_->format == parts_format_) stated_ += counts.total;
    deselected_ += deselected;
    report_.flaky += number_of(numbers_, Noun::flaky);
    ++runs_;
    open_ = nullptr;
    numbers_ = {};
  }

  Report& report_;
  const SummaryRow* open_ = nullptr;  // row of the run whose counts are being read
  SummaryNumbers numbers_, before_;   // its counts; those of further lines before it
  std::string_view before_format_;
  bool started_ = false;
  std::int64_t runs_ = 0, deselected_ = 0, more_lines_ = 0;
  std::int64_t parts_ = 0, stated_ = 0;  // tests that the lines of parts state, and the summaries of their runs
  std::string_view parts_format_;
  Counts summary_, gradle_;
};

}  // namespace

bool recognises_summary(std::string_view text) {
  bool gradle = false, meson = false;
  return any_line(text, [&](std::string_view line) {
    gradle = gradle || gradle_test(line);
    if (gradle && is_end_of_gradle(line)) return true;
    const auto found = summary_line(line);
    if (!found) return false;
    if (is_meson(*found->row)) return std::exchange(meson, true) && found->row->use == Use::more;
    return found->row->use != Use::more && found->row->use != Use::part;
  });
}

Result<Report> parse_summary(std::string_view text) {
  Report report;
  SummaryReader reader(report);
  Lines lines(text);
  while (const auto line = lines.next()) reader.read(*line);
  reader.finish();
  return report;
}

}  // namespace muniment::evidence::reports
