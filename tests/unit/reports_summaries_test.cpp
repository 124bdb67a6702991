// Tests of the last lines of runners that have no reader of their own.
#include <gtest/gtest.h>

#include "unit/reports_golden.hpp"

namespace muniment::evidence::reports {
namespace {

struct Output {
  std::string_view format, text;
  Counts counts;
  std::int64_t deselected = 0;
};

// The lines are in the form that the documentation of each runner shows; those of console_*.txt were printed by it.
const std::vector<Output> outputs{
    {"phpunit", "..F  3 / 3 (100%)\n\nTime: 00:00.005, Memory: 4.00 MB\n\nOK (3 tests, 3 assertions)\n",
     counts_of(3, 0, 0)},
    {"phpunit", "FAILURES!\nTests: 5, Assertions: 4, Errors: 1, Failures: 1, Skipped: 1.\n", counts_of(2, 2, 1)},
    {"phpunit", "OK, but incomplete, skipped, or risky tests!\nTests: 3, Assertions: 2, Incomplete: 1.\n",
     counts_of(2, 0, 1)},
    {"phpunit", "No tests executed!\n", counts_of(0, 0, 0)},
    {"junit_console", "Time: 0.01\n\nOK (3 tests)\n", counts_of(3, 0, 0)},
    {"surefire", "Tests run: 3,  Failures: 1\n", counts_of(2, 1, 0)},
    {"rspec", "Finished in 0.01 seconds (files took 0.1 seconds to load)\n4 examples, 1 failure, 1 pending\n",
     counts_of(2, 1, 1)},
    {"rspec", "0 examples, 0 failures, 1 error occurred outside of examples\n", counts_of(0, 1, 0)},
    {"dotnet",
     "Failed!  - Failed:     1, Passed:     2, Skipped:     1, Total:     4, Duration: 12 ms - a.dll (net8.0)\n",
     counts_of(2, 1, 1)},
    {"dotnet", "Total tests: 4\n     Passed: 2\n     Failed: 1\n    Skipped: 1\n Total time: 1.2 Seconds\n",
     counts_of(2, 1, 1)},
    {"dotnet",
     "Test run summary: Failed! - a.dll (net8.0|x64)\n  total: 4\n  failed: 1\n  succeeded: 2\n  skipped: 1\n",
     counts_of(2, 1, 1)},
    {"dotnet", "Test summary: total: 4, failed: 1, succeeded: 2, skipped: 1, duration: 1.1s\n", counts_of(2, 1, 1)},
    {"surefire", "[INFO] Tests run: 4, Failures: 1, Errors: 1, Skipped: 1\n[INFO] BUILD SUCCESS\n", counts_of(1, 2, 1)},
    {"gradle",
     "CalcTest > adds() PASSED\n\nCalcTest > fails() FAILED\n\n2 tests completed, 1 failed\nBUILD FAILED in 1s\n",
     counts_of(1, 1, 0)},
    {"gradle", "CalcTest > adds() PASSED\nCalcTest > later() SKIPPED\n\nBUILD SUCCESSFUL in 1s\n", counts_of(1, 0, 1)},
    {"sbt", "[info] Passed: Total 3, Failed 0, Errors 0, Passed 3\n", counts_of(3, 0, 0)},
    {"xctest",
     "Test Suite 'CalcTests' passed at 2026-01-01\n\t Executed 2 tests, with 0 failures (0 unexpected) in 0.1 (0.1) "
     "seconds\nTest Suite 'All tests' passed\n\t Executed 3 tests, with 1 test skipped and 1 failure (0 unexpected) in "
     "0.1 (0.2) seconds\n",
     counts_of(1, 1, 1)},
    {"swift_testing", "✔ Test run with 3 tests in 1 suite passed after 0.001 seconds.\n", counts_of(3, 0, 0)},
    {"swift_testing", "✘ Test run with 3 tests in 1 suite failed after 0.001 seconds with 1 issue.\n",
     counts_of(2, 1, 0)},
    {"exunit",
     "Finished in 0.02 seconds (0.00s async, 0.02s sync)\n1 doctest, 5 tests, 1 failure, 1 excluded, 1 skipped\n",
     counts_of(3, 1, 1), 1},
    {"exunit", "There are no tests to run\n", counts_of(0, 0, 0)},
    {"nextest", "------------\n     Summary [   0.007s] 3 tests run: 2 passed (1 slow), 1 failed, 4 skipped\n",
     counts_of(2, 1, 0), 4},
    {"minitest", "3 runs, 4 assertions, 1 failures, 0 errors, 1 skips\n", counts_of(1, 1, 1)},
    {"cucumber", "3 scenarios (1 failed, 2 passed)\n9 steps (1 failed, 8 passed)\n", counts_of(2, 1, 0)},
    {"behave", "3 scenarios passed, 1 failed, 1 skipped\n", counts_of(3, 1, 1)},
    {"meson",
     "Ok:                 3   \nExpected Fail:      0   \nFail:               1   \nSkipped:            1   \n",
     counts_of(3, 1, 1)},
    {"deno", "ok | 3 passed | 0 failed | 1 ignored (5ms)\n", counts_of(3, 0, 1)},
    {"pytest_sugar",
     "Results (0.08s):\n       2 passed\n       1 failed\n         - test_a.py:5 test_b\n       1 deselected\n",
     counts_of(2, 1, 0), 1},
    {"jest", "Test Suites: 1 failed, 1 total\nTests:       0 total\n", counts_of(0, 1, 0)},
    {"jest", "Test Suites: 1 passed, 1 total\nTests:       1 todo, 1 total\n", counts_of(0, 0, 1)},
    {"jest", "No tests found, exiting with code 0\n", counts_of(0, 0, 0)},
    {"vitest", " Test Files  1 failed | 1 passed (2)\n      Tests  2 passed (2)\n", counts_of(2, 1, 0)},
};

TEST(Summaries, TheLastLinesOfEachRunnerAreRead) {
  for (const Output& output : outputs) {
    SCOPED_TRACE(output.text);
    const Report report = read_text(output.text);
    EXPECT_EQ(report.format, output.format);
    EXPECT_EQ(report.counts, output.counts);
    EXPECT_EQ(report.deselected, output.deselected);
    EXPECT_TRUE(report.complete);
    EXPECT_EQ(report.problem, "");
  }
}

TEST(Summaries, ARunThatBeganAndHasNoCountsIsTruncated) {
  const Report report = read_golden("console_gtest_truncated.txt");
  EXPECT_FALSE(report.complete);
  EXPECT_NE(report.problem.find("truncated"), std::string::npos);
}

TEST(Summaries, ListedTestsAreComparedWithTheSummary) {
  const std::string passed = golden_report("console_gtest_passed.txt");
  EXPECT_EQ(read_text(passed).problem, "");
  EXPECT_NE(read_text(replaced(passed, "[==========] 4 tests from 1 test suite ran",
                               "[==========] 9 tests from 1 test suite ran"))
                .problem,
            "");
  const std::string classes = "Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in A\n";
  EXPECT_EQ(read_text(classes + "Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\n").problem, "");
  EXPECT_NE(read_text(classes + "Tests run: 7, Failures: 0, Errors: 0, Skipped: 0\n").problem, "");
}

TEST(Summaries, RunsAreAdded) {
  EXPECT_EQ(read_text("2 passing (3ms)\n1 pending\n\n3 passing (3ms)\n1 failing\n").counts, counts_of(5, 1, 1));
}

TEST(Summaries, ProseIsNoSummary) {
  for (const char* text : {"Ok: 3 apples\n", "Tests are good\n", "passing 3 (x)\n", "1 pending\n", "a > b PASSED\n"})
    EXPECT_FALSE(read_report(text)) << text;
}

}  // namespace
}  // namespace muniment::evidence::reports
