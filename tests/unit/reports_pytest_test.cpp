// Tests of pytest's console output.
#include <gtest/gtest.h>

#include "unit/reports_golden.hpp"

namespace muniment::evidence::reports {
namespace {

TEST(Pytest, AnExpectedFailureIsSkippedAndAnUnexpectedPassHasPassed) {
  EXPECT_EQ(read_text("=== 1 passed, 2 xfailed, 3 xpassed in 0.05s ===\n").counts, counts_of(4, 0, 2));
}

TEST(Pytest, ProgressCharactersListTheTests) {
  const Report report = read_golden("pytest_mixed.txt");
  EXPECT_TRUE(report.listed);
  EXPECT_EQ(report.counts, counts_of(14, 5, 3));
  EXPECT_EQ(report.summary, report.counts);
}

TEST(Pytest, VerboseLinesListTheTests) {
  const Report report = read_golden("pytest_verbose.txt");
  EXPECT_TRUE(report.listed);
  EXPECT_EQ(report.counts, counts_of(14, 5, 3));
}

TEST(Pytest, OutputAmongTheProgressLeavesTheSummary) {
  const Report report = read_golden("pytest_uncaptured.txt");
  EXPECT_FALSE(report.listed);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.counts, counts_of(9, 1, 0));
}

TEST(Pytest, ACollectionErrorIsAFailure) {
  EXPECT_EQ(read_golden("pytest_collection_error.txt").counts, counts_of(0, 1, 0));
}

TEST(Pytest, SessionsWithinOtherOutputAreAdded) {
  EXPECT_EQ(read_golden("pytest_two_sessions.txt").counts, counts_of(3, 1, 1));
}

TEST(Pytest, ASessionWithinCapturedOutputBelongsToItsTest) {
  EXPECT_EQ(read_golden("pytest_nested_session.txt").counts, counts_of(1, 1, 0));
}

TEST(Pytest, ASessionWithinCapturedOutputThatNeverEndsHidesNoSummary) {
  std::string text = replaced(golden_report("pytest_nested_session.txt"), "= 3 passed, 1 skipped in", "= killed");
  const Report report = read_text(text);
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.counts, counts_of(1, 1, 0));
}

TEST(Pytest, ACutSessionIsNotHealedByTheSummaryOfAnInnerOne) {
  const std::string text = golden_report("pytest_nested_session.txt");
  EXPECT_FALSE(read_text(text.substr(0, text.find("= 3 passed, 1 skipped in") + 60)).complete);
}

TEST(Pytest, ASessionWithoutItsSummaryIsTruncated) {
  EXPECT_FALSE(read_golden("pytest_truncated.txt").complete);
  EXPECT_FALSE(read_golden("pytest_first_session_cut.txt").complete);
}

TEST(Pytest, AQuietSessionIsRead) {
  const Report report = read_golden("pytest_quiet.txt");
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.counts, counts_of(3, 0, 1));
}

TEST(Pytest, AQuietSessionMayEndBehindCapturedOutput) {
  const Report report = read_text(
      "F.   [100%]\n=== FAILURES ===\n___ test_a ___\n----- Captured stdout call -----\nhello\n1 failed, 1 passed in 0.02s\n");
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.counts, counts_of(1, 1, 0));
}

TEST(Pytest, NoTestsAreZeroTests) {
  EXPECT_EQ(read_text("=== test session starts ===\ncollected 0 items\n\n=== no tests ran in 0.00s ===\n").counts,
            Counts{});
  EXPECT_EQ(read_golden("pytest_deselected.txt").counts, Counts{});
}

TEST(Pytest, NewNumbersContradictTheProgress) { EXPECT_NE(read_golden("pytest_new_numbers.txt").problem, ""); }

TEST(Pytest, MoreTestsThanCollectedAreAProblem) {
  EXPECT_EQ(read_text("=== test session starts ===\ncollected 4 items\n\n=== 40 passed in 0.02s ===\n").problem,
            "pytest collected 4 tests and sums up 40 tests: 40 passed, 0 failed, 0 skipped");
}

TEST(Pytest, FewerTestsThanCollectedAreAProblemUnlessItStopped) {
  EXPECT_NE(read_text("=== test session starts ===\ncollected 9 items\n\n=== 4 passed in 0.02s ===\n").problem, "");
  EXPECT_EQ(read_golden("pytest_stopped.txt").problem, "");
}

TEST(Pytest, AnInterruptedSessionWithoutAFailureIsAProblem) {
  EXPECT_NE(
      read_text(
          "=== test session starts ===\ncollected 9 items\n\ntest_a.py ....\n\n!!! KeyboardInterrupt !!!\n=== 4 passed in 0.02s ===\n")
          .problem,
      "");
}

TEST(Pytest, AReasonWithBracketsLeavesTheListReadable) {
  const Report report = read_text(
      "=== test session starts ===\ncollected 2 items\n\ntest_a.py::test_a[x y] PASSED  [ 50%]\n"
      "test_a.py::test_b SKIPPED (no disk (yet))  [100%]\n\n=== 1 passed, 1 skipped in 0.02s ===\n");
  EXPECT_TRUE(report.listed);
  EXPECT_EQ(report.counts, counts_of(1, 0, 1));
}

TEST(Pytest, NamedFailuresThatTheSummaryHidesAreAProblem) {
  EXPECT_NE(
      read_text("=== short test summary info ===\nFAILED test_a.py::test_b - assert 0\n=== 2 passed in 0.02s ===\n")
          .problem,
      "");
}

TEST(Pytest, SubtestsAreNoCollectedTests) {
  const Report report = read_golden("pytest_subtests.txt");
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.counts, counts_of(1, 2, 0));
}

TEST(Pytest, ASummaryByItselfIsComplete) {
  const Report report = read_text("=========== 12 passed, 1 warning in 75.20s (0:01:15) ===========\n");
  EXPECT_TRUE(report.complete);
  EXPECT_FALSE(report.listed);
  EXPECT_EQ(report.counts, counts_of(12, 0, 0));
}

TEST(Pytest, TheSummaryOfAnOldVersionIsRead) {
  EXPECT_EQ(read_text("===== 2 failed, 54 passed, 9 warnings in 7.37 seconds =====\n").counts, counts_of(54, 2, 0));
}

TEST(Pytest, DistributedTestsAreListed) {
  const Report report = read_text(
      "=== test session starts ===\n2 workers [2 items]\nscheduling tests via LoadScheduling\ntest_a.py::test_a \ntest_a.py::test_b \n[gw0] [ 50%] PASSED test_a.py::test_a[1] \n"
      "[gw1] [100%] FAILED test_a.py::test_b \n\n=== 1 failed, 1 passed in 0.50s ===\n");
  EXPECT_TRUE(report.listed);
  EXPECT_EQ(report.counts, counts_of(1, 1, 0));
  EXPECT_EQ(report.problem, "");
}

}  // namespace
}  // namespace muniment::evidence::reports
