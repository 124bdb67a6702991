// Tests of the console output of ctest, go test, cargo test and unittest.
#include <gtest/gtest.h>

#include "unit/reports_golden.hpp"

namespace muniment::evidence::reports {
namespace {

TEST(Ctest, ASkippedAndADisabledTestAreSkipped) {
  EXPECT_EQ(read_golden("ctest_failed.txt").counts, counts_of(1, 3, 2));
}

TEST(Ctest, ARunWithoutTestsIsCompleteAndHasNone) {
  const Report report = read_golden("ctest_none.txt");
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.counts, Counts{});
}

TEST(Ctest, ARepeatedTestCountsWithItsLastResult) {
  const Report report = read_text(
      "Test project /b\n    Start 1: a\n    Test #1: a ....***Failed    0.00 sec\n    Start 1: a\n1/1 Test #1: a ....   Passed    0.00 sec\n\n"
      "100% tests passed, 0 tests failed out of 1\n");
  EXPECT_EQ(report.counts, counts_of(1, 0, 0));
  EXPECT_EQ(report.problem, "");
}

TEST(Ctest, TwoRunsAreAdded) {
  EXPECT_EQ(read_text(golden_report("ctest_passed.txt") + golden_report("ctest_failed.txt")).counts,
            counts_of(4, 3, 4));
}

TEST(Ctest, APercentageThatDoesNotFitIsAProblem) {
  EXPECT_NE(read_text("100% tests passed, 3 tests failed out of 5\n").problem.find("100% passed"), std::string::npos);
}

TEST(Ctest, AFailureThatTheSummaryHidesIsAProblem) { EXPECT_NE(read_golden("ctest_failures_removed.txt").problem, ""); }

TEST(Ctest, ASecondRunWithoutASummaryIsTruncated) {
  EXPECT_FALSE(read_text(golden_report("ctest_passed.txt") + golden_report("ctest_truncated.txt")).complete);
}

TEST(GoTest, SubtestsCount) { EXPECT_EQ(read_golden("go_verbose.txt").counts, counts_of(8, 0, 1)); }

TEST(GoTest, PackagesAreAdded) { EXPECT_EQ(read_golden("go_verbose_failed.txt").counts, counts_of(7, 2, 1)); }

TEST(GoTest, WithoutVerboseOutputAPackageIsOneTest) {
  const Report report = read_golden("go_packages.txt");
  EXPECT_EQ(report.counts, counts_of(2, 0, 0));
  EXPECT_FALSE(report.listed);
}

TEST(GoTest, NoTestsToRunAreZeroTests) { EXPECT_EQ(read_golden("go_none.txt").counts, Counts{}); }

TEST(GoTest, APackageThatDoesNotBuildIsOneFailedTest) {
  EXPECT_EQ(read_text("# a\n./a.go:3:1: syntax error\nFAIL\ta [build failed]\nok  \tb\t(cached)\nFAIL\n").counts,
            counts_of(1, 1, 0));
}

TEST(GoTest, ATestThatHangsFailsWithItsPackage) {
  const Report report = read_text("=== RUN   TestX\npanic: test timed out after 1s\nFAIL\ta\t1.004s\n");
  EXPECT_EQ(report.counts, counts_of(0, 1, 0));
  EXPECT_EQ(report.failures, std::vector<std::string>{"TestX"});
}

TEST(GoTest, AResultBehindOutputCountsWhereItsTestRuns) {
  EXPECT_EQ(
      read_text("=== RUN   TestX\nhello--- PASS: TestX (0.00s)\nlog--- PASS: TestY (0.00s)\nPASS\nok  \ta\t0.1s\n")
          .counts,
      counts_of(1, 0, 0));
}

TEST(GoTest, ATestBinaryByItselfEndsWithItsVerdict) {
  EXPECT_TRUE(read_text("=== RUN   TestX\n--- PASS: TestX (0.00s)\nPASS\n").complete);
  EXPECT_FALSE(read_text("=== RUN   TestX\n--- PASS: TestX (0.00s)\n").complete);
}

TEST(GoTest, APackageThatPassedWithAFailedTestIsAProblem) {
  EXPECT_NE(read_golden("go_failures_hidden.txt").problem, "");
}

TEST(CargoTest, SuitesAreAdded) {
  const Report report = read_golden("cargo_passed.txt");
  EXPECT_EQ(report.counts, counts_of(6, 0, 1));
  EXPECT_TRUE(report.listed);
}

TEST(CargoTest, AQuietRunIsItsSummary) {
  const Report report = read_golden("cargo_quiet.txt");
  EXPECT_EQ(report.counts, counts_of(6, 0, 1));
  EXPECT_FALSE(report.listed);
}

TEST(CargoTest, ASuiteThatAnnouncesOtherTestsThanItCountsIsAProblem) {
  EXPECT_EQ(read_text("running 5 tests\ntest result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out\n")
                .problem,
            "a suite announces 5 tests, and its summary is 4 tests: 4 passed, 0 failed, 0 skipped");
}

TEST(CargoTest, AResultThatContradictsItsCountsIsAProblem) {
  EXPECT_NE(read_text("test result: ok. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n").problem, "");
  EXPECT_NE(read_text("test result: FAILED. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n").problem, "");
}

TEST(CargoTest, ASuiteThatAbortsIsTruncated) {
  EXPECT_FALSE(
      read_text(
          "running 2 tests\ntest a ... ok\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n")
          .complete);
}

TEST(CargoTest, ABenchmarkThatWasMeasuredHasPassed) {
  EXPECT_EQ(
      read_text(
          "running 1 test\ntest b ... bench:   1,234 ns/iter (+/- 5)\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out\n")
          .counts,
      counts_of(1, 0, 0));
}

TEST(CargoTest, OutputBehindANameLeavesTheSummary) {
  const Report report = read_text(
      "running 1 test\ntest a ... hello\nok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n");
  EXPECT_EQ(report.problem, "");
  EXPECT_FALSE(report.listed);
}

TEST(Unittest, AnExpectedFailureIsSkipped) {
  EXPECT_EQ(read_golden("unittest_verbose.txt").counts, counts_of(6, 0, 2));
}

TEST(Unittest, AnUnexpectedSuccessHasFailed) {
  EXPECT_EQ(read_text("Ran 2 tests in 0.1s\n\nFAILED (unexpected successes=1)\n").counts, counts_of(1, 1, 0));
}

TEST(Unittest, OutputOfOthersMayFollowTheStatus) {
  const Report report =
      read_text("Ran 2 tests in 0.1s\nDestroying test database for alias 'default'...\nOK\nTesting against Django\n");
  EXPECT_EQ(report.counts, counts_of(2, 0, 0));
  EXPECT_TRUE(report.complete);
}

TEST(Unittest, RunsAreAdded) {
  EXPECT_EQ(read_text("Ran 2 tests in 0.1s\n\nOK\nRan 3 tests in 0.1s\n\nFAILED (failures=1)\n").counts,
            counts_of(4, 1, 0));
}

TEST(Unittest, ARunWithoutItsStatusIsTruncated) {
  EXPECT_FALSE(read_text("Ran 2 tests in 0.1s\n\n").complete);
  EXPECT_FALSE(read_text("Ran 2 tests in 0.1s\nRan 3 tests in 0.1s\n\nOK\n").complete);
}

TEST(Unittest, AStatusThatContradictsItsCountsIsAProblem) {
  EXPECT_NE(read_text("Ran 2 tests in 0.1s\n\nOK (failures=1)\n").problem, "");
  EXPECT_NE(read_text("Ran 2 tests in 0.1s\n\nFAILED (skipped=1)\n").problem, "");
}

TEST(Unittest, FailuresThatTheStatusHidesAreAProblem) {
  EXPECT_NE(read_golden("unittest_failures_removed.txt").problem, "");
}

TEST(Unittest, MoreDotsThanTestsAreAProblem) {
  EXPECT_EQ(read_text("....\n" + std::string(70, '-') + "\nRan 2 tests in 0.1s\n\nOK\n").problem,
            "the progress shows 4 passed tests, and the counts are 2 tests: 2 passed, 0 failed, 0 skipped");
}

}  // namespace
}  // namespace muniment::evidence::reports
