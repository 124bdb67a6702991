// Tests of TAP, as written by node and by others, and of node's spec reporter.
#include <gtest/gtest.h>

#include "unit/reports_golden.hpp"

namespace muniment::evidence::reports {
namespace {

TEST(Tap, ASkippedTestAndATodoAreSkipped) {
  EXPECT_EQ(read_text("1..3\nok 1 - a # SKIP why\nnot ok 2 - b # TODO later\nok 3 - c # todo\n").counts,
            counts_of(0, 0, 3));
}

TEST(Tap, ASkippedTestThatIsNotOkHasFailed) {
  EXPECT_EQ(read_text("1..1\nnot ok 1 - a # SKIP why\n").counts, counts_of(0, 1, 0));
}

TEST(Tap, AnEscapedHashIsNoDirective) {
  EXPECT_EQ(read_text("1..1\nnot ok 1 - a \\# TODO\n").counts, counts_of(0, 1, 0));
}

TEST(Tap, ASubtestIsPartOfItsTest) {
  const Report report = read_golden("tap_perl.tap");
  EXPECT_EQ(report.counts, counts_of(3, 0, 1));
  EXPECT_TRUE(report.complete);
}

TEST(Tap, ASubtestThatFailedContradictsATestThatIsOk) {
  EXPECT_EQ(read_golden("tap_subtest_hidden.tap").problem, "the test \"deep\" is ok, and one of its subtests is not");
}

TEST(Tap, ASubtestWithATodoMayFail) {
  EXPECT_EQ(read_text("    not ok 1 - inner # TODO\n    1..1\nok 1 - outer\n1..1\n").problem, "");
}

TEST(Tap, APlanOfASubtestIsHeldAgainstItsTests) {
  EXPECT_EQ(read_text("    1..3\n    ok 1 - inner\nok 1 - outer\n1..1\n").problem,
            "a plan is for 3 tests, and 1 are listed");
}

TEST(Tap, FewerTestsThanPlannedAreTruncated) {
  const Report report = read_golden("tap_plan_short.tap");
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.problem, "the plan is for 9 tests, and 4 are listed");
}

TEST(Tap, MoreTestsThanPlannedAreAProblem) {
  EXPECT_EQ(read_text("1..1\nok 1 - a\nok 2 - b\n").problem, "the plan is for 1 tests, and 2 are listed");
}

TEST(Tap, AStreamWithoutAPlanIsTruncated) { EXPECT_FALSE(read_text("ok 1 - a\nok 2 - b\n").complete); }

TEST(Tap, ANumberThatIsThereTwiceIsOutOfSequence) {
  EXPECT_NE(read_text("1..3\nok 1 - a\nok 2 - b\nok 2 - b\n").problem.find("out of sequence"), std::string::npos);
}

TEST(Tap, ABailOutEndsIt) {
  const Report report = read_golden("tap_bail_out.tap");
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.problem, "the run bailed out: disk full");
}

TEST(Tap, StreamsOneBehindAnotherAreAdded) {
  EXPECT_EQ(read_text("TAP version 13\n1..1\nok 1 - a\nTAP version 13\nok 1 - b\nnot ok 2 - c\n1..2\n").counts,
            counts_of(2, 1, 0));
  EXPECT_EQ(read_golden("tap_prove.txt").counts, counts_of(6, 0, 2));
}

TEST(Tap, APlanThatSkipsAllIsOneSkippedTest) { EXPECT_EQ(read_golden("tap_skip_all.tap").counts, counts_of(0, 0, 1)); }

TEST(Tap, AnEmptyPlanHasZeroTests) {
  const Report report = read_text("TAP version 13\n1..0\n");
  EXPECT_EQ(report.counts, Counts{});
  EXPECT_TRUE(report.complete);
}

TEST(Tap, ASummaryInCommentsIsHeldAgainstTheList) {
  const std::string list = "TAP version 13\nok 1 a\nnot ok 2 b\n\n1..2\n";
  EXPECT_EQ(read_text(list + "# tests 2\n# pass  1\n# fail  1\n").problem, "");
  EXPECT_NE(read_text(list + "# tests 2\n# pass  2\n# fail  0\n").problem, "");
}

TEST(Tap, AResultWithinYamlIsNoTest) {
  EXPECT_EQ(read_text("1..1\nok 1 - a\n  ---\n  out: |\nok 2 - b\n  ...\n").counts.total, 1);
}

TEST(Tap, ResultsDeeperThanTheLimitAreNotRead) {
  const std::string deep(4 * 33, ' '), shallow(4 * 32, ' ');
  EXPECT_EQ(read_text("1..1\n" + deep + "not ok 1 - a\nok 1 - b\n").problem, "");
  EXPECT_NE(read_text("1..1\n" + shallow + "not ok 1 - a\nok 1 - b\n").counts.total, 0);
}

TEST(NodeTap, SubtestsCountAndSuitesDoNot) {
  const Report report = read_golden("node_tap_failed.txt");
  EXPECT_EQ(report.format, "node_test");
  EXPECT_EQ(report.counts, counts_of(7, 2, 4));
  EXPECT_EQ(report.summary, report.counts);
  EXPECT_EQ(report.failures, (std::vector<std::string>{"fails", "breaks"}));
}

TEST(NodeSpec, TheSummaryCounts) {
  const Report report = read_golden("node_spec_failed.txt");
  EXPECT_EQ(report.counts, counts_of(7, 2, 4));
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.problem, "");
}

TEST(NodeSpec, TwoRunsAreAdded) {
  const Report report = read_text(golden_report("node_spec_failed.txt") + golden_report("node_spec.txt"));
  EXPECT_EQ(report.counts, counts_of(13, 2, 6));
  EXPECT_EQ(report.problem, "");
}

TEST(NodeSpec, MoreTestsInTheSummaryThanMarksAreAProblem) {
  EXPECT_EQ(read_golden("node_spec_new_numbers.txt").problem,
            "the report lists 10 tests and suites; its summary states 82");
}

TEST(NodeSpec, MarksWithoutASummaryAreTruncated) { EXPECT_FALSE(read_golden("node_spec_truncated.txt").complete); }

TEST(NodeSpec, ACancelledTestHasFailed) {
  EXPECT_EQ(
      read_text("ℹ tests 2\nℹ suites 0\nℹ pass 1\nℹ fail 0\nℹ cancelled 1\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 4.5\n")
          .counts,
      counts_of(1, 1, 0));
}

TEST(NodeSpec, ASummaryWhosePartsMissTheTotalDoesNotAddUp) {
  EXPECT_NE(read_text("ℹ tests 9\nℹ pass 1\nℹ fail 0\nℹ duration_ms 4.5\n").problem, "");
}

}  // namespace
}  // namespace muniment::evidence::reports
