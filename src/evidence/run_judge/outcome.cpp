// Determines the outcome of a check from exit codes, test summaries and error texts.
#include "evidence/run_judge/outcome.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {
namespace {

constexpr std::size_t exit_code_bytes = 400;  // length of each end of an output that is searched for an exit code
constexpr std::size_t error_bytes = 4'000;    // length of the end of an output that is searched for an uncaught error
constexpr std::size_t summary_bytes = 64 << 10;  // length of the end of an output that is searched for a summary

std::string_view tail_of(std::string_view text, std::size_t bytes) {
  return text.substr(text.size() - std::min(text.size(), bytes));
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A summary line of a test runner; the group of each pattern is the number. The last summary of a runner counts.
struct Summary {
  Pattern line;  // matches the runner's summary; the numbers are searched in its group
  Pattern passed;
  Pattern failed;
  Pattern skipped;
};

const std::vector<Summary>& summaries() {
  static const std::vector<Summary> all = [] {
    std::vector<Summary> made;
    const auto add = [&](const char* line, const char* passed, const char* failed, const char* skipped) {
      made.push_back({Pattern(line), Pattern(passed), Pattern(failed), Pattern(skipped)});
    };
    // pytest: "==== 1 failed, 12 passed, 3 skipped in 0.12s ====", and -q without the rules.
    add(R"((?m)^(?:=+ )?((?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun)(?:, )?)+|no tests ran) in [\d.:]+ ?s?)",
        R"((\d+) (?:passed|xpassed))", R"((\d+) (?:failed|errors?))", R"((\d+) (?:skipped|xfailed))");
    // cargo test: "test result: ok. 5 passed; 0 failed; 1 ignored"
    add(R"((?m)^(test result: .*)$)", R"((\d+) passed)", R"((\d+) failed)", R"((\d+) ignored)");
    // jest, vitest: "Tests:  1 failed, 2 skipped, 9 passed, 12 total"
    add(R"((?m)^\s*(Tests:?\s+\d.*)$)", R"((\d+) passed)", R"((\d+) failed)", R"((\d+) (?:skipped|todo))");
    // node's runner: "# pass 4", each count on its own line
    add(R"((?m)^((?:# |ℹ )tests \d+(?:\n(?:# |ℹ ).*)+))", R"((?:# |ℹ )pass (\d+))", R"((?:# |ℹ )fail (\d+))",
        R"((?:# |ℹ )(?:skipped|todo) (\d+))");
    // mocha: "12 passing (3s)", then "1 failing"
    add(R"((?m)^\s*(\d+ passing(?: \([^)\n]*\))?(?:\s*\n\s*\d+ (?:failing|pending))*))", R"((\d+) passing)",
        R"((\d+) failing)", R"((\d+) pending)");
    // ctest: "97% tests passed, 3 tests failed out of 110"
    add(R"((?m)^(\d+% tests passed, \d+ tests failed out of \d+))", R"(passed, \d+ tests failed out of (\d+))",
        R"((\d+) tests failed)", R"(no(\d+)skips)");
    // surefire: "Tests run: 12, Failures: 1, Errors: 0, Skipped: 2"
    add(R"((?m)(Tests run: \d+, Failures: \d+, Errors: \d+(?:, Skipped: \d+)?)[^\n]*)", R"(run: (\d+))",
        R"((?:Failures|Errors): ([1-9]\d*))", R"(Skipped: (\d+))");
    // rspec: "12 examples, 1 failure"; minitest: "5 runs, 9 assertions, 0 failures, 0 errors, 0 skips"
    add(R"((?m)^(\d+ (?:examples?|runs?),.*failures?.*)$)", R"((\d+) (?:examples?|runs?))",
        R"(([1-9]\d*) (?:failures?|errors?))", R"((\d+) (?:pending|skips))");
    // GoogleTest: "[  PASSED  ] 12 tests." and "[  FAILED  ] 1 test, listed below"
    add(R"((?m)^(\[  PASSED  \] \d+ tests?\.(?:\s*\n\[  (?:FAILED|SKIPPED)  \] \d+ tests?.*)*))", R"(PASSED  \] (\d+))",
        R"(FAILED  \] (\d+))", R"(SKIPPED ?\] (\d+))");
    // sympy's bin/test: "tests finished: 38 passed, 1 failed, in 0.78 seconds"
    add(R"((?m)^[= ]*tests finished: (.*)$)", R"((\d+) passed)", R"((\d+) (?:failed|exceptions?))",
        R"((\d+) (?:skipped|expected))");
    return made;
  }();
  return all;
}

std::int64_t sum_of(const Pattern& pattern, std::string_view text) {
  std::int64_t sum = 0;
  for (std::size_t from = 0;;) {
    const auto found = pattern.find(text, from);
    if (!found) return sum;
    sum += std::min<std::int64_t>(number_of(found->group).value_or(0), 1'000'000'000);
    from = found->end;
  }
}

std::optional<reports::Counts> summary_in(std::string_view tail) {
  for (const Summary& summary : summaries()) {
    const auto line = summary.line.find_last(tail);
    if (!line) continue;
    reports::Counts counts;
    counts.passed = sum_of(summary.passed, line->group);
    counts.failed = sum_of(summary.failed, line->group);
    counts.skipped = sum_of(summary.skipped, line->group);
    // Some runners print the total instead of the number of passed tests.
    const bool of_all = line->group.find("Tests run:") != std::string_view::npos ||
                        line->group.find("out of") != std::string_view::npos ||
                        line->group.find("example") != std::string_view::npos ||
                        line->group.find(" run") != std::string_view::npos;
    if (of_all) counts.passed = std::max<std::int64_t>(counts.passed - counts.failed - counts.skipped, 0);
    counts.total = counts.passed + counts.failed + counts.skipped;
    return counts;
  }
  return std::nullopt;
}

// unittest and Django: "Ran 12 tests in 0.03s", then "OK (skipped=2)" or "FAILED (failures=1, errors=2)".
std::optional<reports::Counts> unittest_in(std::string_view tail) {
  static const Pattern line(R"((?m)^(Ran \d+ tests? in [\d.]+s\s+(?:OK|FAILED|NO TESTS RAN)(?: \([^)\n]*\))?))", false);
  static const Pattern ran(R"(Ran (\d+) tests?)", false);
  static const Pattern bad(R"((?:[( ]failures|errors|unexpected successes)=(\d+))", false);
  static const Pattern left_out(R"((?:skipped|expected failures)=(\d+))", false);
  const auto found = line.find_last(tail);
  if (!found) return std::nullopt;
  reports::Counts counts;
  counts.total = sum_of(ran, found->group);
  counts.failed = sum_of(bad, found->group);
  counts.skipped = sum_of(left_out, found->group);
  counts.passed = std::max<std::int64_t>(counts.total - counts.failed - counts.skipped, 0);
  return counts;
}

// go test: "ok  \tpkg\t0.1s" and "FAIL\tpkg"; a package counts as one test if no tests are listed.
std::optional<reports::Counts> go_in(std::string_view tail) {
  static const Pattern passed(R"((?m)^(ok)\s+\S+\s+(?:[\d.]+s|\(cached\)))", false);
  static const Pattern failed(R"((?m)^(FAIL)(?:\s+\S+\s+(?:[\d.]+s|\[build failed\]))?\s*$)", false);
  static const Pattern empty(R"((?m)^ok\s+\S+\s+\S+\s+\[no tests to run\]|^\?\s+\S+\s+\[no test files\])", false);
  reports::Counts counts;
  const auto count = [&](const Pattern& pattern) {
    std::int64_t found = 0;
    for (std::size_t from = 0;;) {
      const auto next = pattern.find(tail, from);
      if (!next) return found;
      ++found;
      from = next->end > from ? next->end : from + 1;
    }
  };
  const std::int64_t ok = count(passed);
  counts.failed = count(failed);
  counts.passed = std::max<std::int64_t>(ok - count(empty), 0);
  counts.total = counts.passed + counts.failed;
  if (ok + counts.failed == 0) return std::nullopt;
  return counts;
}

// Returns the outcome without an exit status, from the success messages of tools or an uncaught error.
Outcome outcome_shown(Check check, std::string_view output) {
  static const Pattern committed(R"((?m)^\[[\w/. ()-]+ [0-9a-f]{7,}\]|^ ?\d+ files? changed)", false);
  static const Pattern installed(R"((?m)^(?:Successfully installed|Requirement already satisfied|added \d+ packages?))",
                                 false);
  static const Pattern pushed(R"((?m)^\s*(?:[0-9a-f]{7,}\.\.[0-9a-f]{7,}|\* \[new branch\]|Everything up-to-date))",
                              false);
  if (check == Check::commit && committed.in(output)) return Outcome::passed;
  if (check == Check::install && installed.in(output)) return Outcome::passed;
  if (check == Check::push && pushed.in(output)) return Outcome::passed;
  return check != Check::run && shows_error(output) ? Outcome::failed : Outcome::unknown;
}

}  // namespace

std::optional<std::int64_t> exit_code_in(std::string_view output) {
  static const Pattern at_end(
      R"((?:\[Command finished with exit code|\[The command completed with exit code|Process exited with (?:code|status)|<exit_?code>|<return_?code>|"exit_?code":|exit code:?|Exit code:?|exit status:?)\s*(-?\d{1,5})(?:\]|\.|</exit_?code>|</return_?code>)?[^\n]*(?:\n[^\n]*){0,4}\s*$)",
      true);
  static const Pattern at_begin(
      R"(^\s*(?:<return_?code>|<exit_?code>|Exit code:?|Process exited with code|Command failed with exit code|exited with code)\s*(-?\d{1,5}))",
      true);
  const std::string_view head = output.substr(0, exit_code_bytes);
  if (const auto found = at_begin.find(head)) return number_of(found->group);
  if (const auto found = at_end.find_last(tail_of(output, exit_code_bytes))) return number_of(found->group);
  return std::nullopt;
}

std::optional<reports::Counts> test_counts_in(std::string_view output) {
  if (const auto report = reports::read_report(output);
      report && report->complete && report->problem.empty() && !report->analysis) {
    return report->counts;
  }
  // Searches a summary within a shell's output, between prompts and other commands.
  const std::string_view tail = tail_of(output, summary_bytes);
  if (auto counts = summary_in(tail)) return counts;
  if (auto counts = unittest_in(tail)) return counts;
  return go_in(tail);
}

bool shows_error(std::string_view output) {
  static const Pattern uncaught(
      R"((?m)^(?:Traceback \(most recent call last\)|\w*(?:Error|Exception)(?::|$)|thread '.*' panicked|panic: |fatal: |FATAL|Segmentation fault|.*: command not found|.*: No such file or directory|error(?:\[\w+\])?: |npm ERR!|EXECUTION TIMED OUT))",
      false);
  return uncaught.in(tail_of(output, error_bytes));
}

CheckEnd end_of(const CheckRun& run, const Ending& ending) {
  CheckEnd end;
  if (ending.cut_short) return end;
  if (run.check == Check::test) end.counts = ending.counts ? ending.counts : test_counts_in(ending.output);
  const bool exit_known = run.status_speaks && (ending.exit_code || ending.failed || ending.succeeded);
  const bool exit_good = exit_known && !ending.failed && ending.exit_code.value_or(0) == 0;
  if (end.counts) {
    const reports::Counts& counts = *end.counts;
    if (counts.failed > 0) {
      end.outcome = Outcome::failed;
    } else if (exit_known && !exit_good) {
      end.outcome = Outcome::unknown;  // the report and the status contradict each other
    } else {
      end.outcome = counts.passed > 0 ? Outcome::passed : Outcome::no_tests;
      // A different command of the line may have printed or filtered the counts.
      if (end.outcome == Outcome::passed && !run.output_speaks && !exit_good) end.outcome = Outcome::unknown;
    }
    return end;
  }
  if (exit_known) {
    end.outcome = exit_good ? Outcome::passed : Outcome::failed;
    return end;
  }
  end.outcome = outcome_shown(run.check, ending.output);
  return end;
}

}  // namespace muniment::evidence::run_judge
