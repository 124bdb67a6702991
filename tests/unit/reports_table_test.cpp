// Tests of the format table and of properties common to all formats: limits, absurd counts, hostile bytes.
#include <gtest/gtest.h>

#include "evidence/reports/lines.hpp"
#include "evidence/reports/tally.hpp"
#include "unit/reports_golden.hpp"

namespace muniment::evidence::reports {
namespace {

TEST(ReportTable, ProseIsNoReport) {
  for (const std::string_view text :
       {"", "All tests passed.", "I ran the tests and 12 passed.", "ok", "OK", "TODO", "Ran the tests: OK", "PASS",
        "We saw 5 passed in 3 runs.", "{}", "{\"runs\": 3}", "<html><body>tests=\"5\"</body></html>",
        "1..2 of them work", "test result", "ok 1 of 3 checks", "ok done 5s", "ok  all tests 5s"})
    EXPECT_FALSE(read_report(text)) << text;
}

TEST(ReportTable, ATextAtTheLimitIsRead) {
  std::string text = golden_report("pytest_passed.txt");
  text.insert(0, std::string(report_bytes_max - text.size() - 1, 'x') + "\n");
  ASSERT_EQ(text.size(), report_bytes_max);
  const Report report = read_text(text);
  EXPECT_EQ(report.counts, counts_of(3, 0, 1));
  EXPECT_EQ(report.problem, "");
}

TEST(ReportTable, ATextOverTheLimitIsNotCounted) {
  std::string text = golden_report("pytest_passed.txt");
  text.append(report_bytes_max + 1 - text.size(), '\n');
  const Report report = read_text(text);
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.counts, Counts{});
  EXPECT_EQ(report.problem, "the report has 16.0 MiB; at most 16.0 MiB are read of this format");
}

TEST(ReportTable, AJsonReportAtItsOwnLimitIsRead) {
  for (const std::string_view name : {"sarif_error.sarif", "gtest.json"}) {
    std::string text = golden_report(name);
    const Counts counts = read_text(text).counts;
    text.append(json_report_bytes_max - text.size(), '\n');
    EXPECT_EQ(read_text(text).problem, "") << name;
    EXPECT_EQ(read_text(text).counts, counts) << name;
  }
}

TEST(ReportTable, AJsonReportOverItsOwnLimitIsNotCounted) {
  for (const std::string_view name : {"sarif_error.sarif", "gtest.json"}) {
    std::string text = golden_report(name);
    text.append(json_report_bytes_max + 1 - text.size(), '\n');
    const Report report = read_text(text);
    EXPECT_FALSE(report.complete) << name;
    EXPECT_EQ(report.counts, Counts{}) << name;
    EXPECT_EQ(report.problem, "the report has 4.0 MiB; at most 4.0 MiB are read of this format") << name;
  }
}

TEST(ReportTable, TwentyFailuresAreNamed) {
  std::string text = "TAP version 13\n1..21\n";
  for (int i = 1; i <= 21; ++i) text += "not ok " + std::to_string(i) + " - t" + std::to_string(i) + "\n";
  const Report report = read_text(text);
  EXPECT_EQ(report.counts.failed, 21);
  ASSERT_EQ(report.failures.size(), failures_kept_max);
  EXPECT_EQ(report.failures.back(), "t20");
}

TEST(ReportTable, ALongNameIsCut) {
  const std::string fits(test_name_bytes_max, 'a');
  EXPECT_EQ(read_text("1..1\nnot ok 1 - " + fits + "\n").failures.at(0), fits);
  const std::string cut = read_text("1..1\nnot ok 1 - " + fits + "b\n").failures.at(0);
  EXPECT_LE(cut.size(), test_name_bytes_max);
}

TEST(ReportTable, ACountAtTheLimitIsAccepted) {
  EXPECT_EQ(read_text("=== 1000000000 passed in 1.00s ===\n").problem, "");
  EXPECT_EQ(read_text("=== 1000000000 passed in 1.00s ===\n").counts.passed, count_max);
}

TEST(ReportTable, ACountOverTheLimitIsAbsurd) {
  for (const std::string_view count : {"1000000001", "9223372036854775807", "99999999999999999999999999"})
    EXPECT_EQ(read_text("=== " + std::string(count) + " passed in 1.00s ===\n").problem,
              "a count is negative or above 1,000,000,000");
}

TEST(ReportTable, ANegativeCountIsAbsurdInEveryConsoleFormat) {
  for (const std::string_view text : {"=== -3 passed, 5 failed in 1.00s ===", "Ran -2 tests in 0.1s\n\nOK",
                                      "test result: ok. -4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
                                      "100% tests passed, 0 tests failed out of -5",
                                      "ℹ tests -1\nℹ pass -1\nℹ duration_ms 1.5", "TAP version 13\n1..-4\n"})
    EXPECT_NE(read_text(text).problem, "") << text;
}

TEST(ReportTable, ColoursAndCarriageReturnsChangeNoCount) {
  std::string text = golden_report("cargo_passed.txt"), coloured;
  for (const char c : text) {
    if (c == '\n') coloured += "\x1b[0m\r";
    coloured += c;
    if (c == ' ') coloured += "\x1b[1;32m";
  }
  EXPECT_EQ(read_text(coloured).counts, read_text(text).counts);
  EXPECT_TRUE(read_text(coloured).listed);
}

TEST(ReportTable, AnOverwrittenProgressLineIsALineOfItsOwn) {
  EXPECT_EQ(plain_text("Compiling 1\rCompiling 2\r\ndone\x1b]0;title\a!\n"), "Compiling 1\nCompiling 2\ndone!\n");
}

TEST(ReportTable, AnEscapeAtTheEndOfTheTextIsDropped) {
  for (const std::string_view text : {"a\x1b", "a\x1b[", "a\x1b[31", "a\x1b]0;t", "a\x1b(", "a\x1b(B"})
    EXPECT_EQ(plain_text(text), "a");
}

TEST(ReportTable, TheRunnerThatStartsOthersIsTheOneThatCounts) {
  const std::string text =
      replaced(golden_report("ctest_passed.txt"), "1/5 Test", golden_report("pytest_passed.txt") + "1/5 Test");
  EXPECT_EQ(read_text(text).format, "ctest");
  EXPECT_EQ(read_text(text).counts, counts_of(3, 0, 2));
}

TEST(ReportTable, EveryPrefixOfAReportIsReadWithoutHarm) {
  for (const std::string_view name :
       {"junit_pytest.xml", "gtest.json", "pytest_mixed.txt", "tap_prove.txt", "ctest_failed.txt",
        "go_events_failed.json", "cargo_failed.txt", "node_tap_failed.txt", "unittest_verbose_failed.txt"}) {
    const std::string text = golden_report(name);
    const Report whole = read_text(text);
    for (std::size_t end = 0; end + 1 < text.size(); end += 37) {
      const auto part = read_report(std::string_view(text).substr(0, end));
      const bool clean = part && part->complete && part->problem.empty();
      EXPECT_TRUE(!clean || part->counts.total <= whole.counts.total) << name << ' ' << end;
    }
  }
}

TEST(ReportTable, ABinaryTextIsNoReport) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 7 % 256);
  EXPECT_FALSE(read_report(bytes));
}

TEST(ReportTable, CountsThatDoNotAddUpAreAProblem) {
  Report report;
  report.complete = true;
  report.summary = Counts{.total = 5, .passed = 3, .failed = 0, .skipped = 1};
  check_counts(report);
  EXPECT_EQ(report.problem, "the summary does not add up: 5 tests: 3 passed, 0 failed, 1 skipped");
}

TEST(Reports, ThePassedTestsAreNamed) {
  for (const char* name :
       {"go_verbose.txt", "go_events.json", "cargo_passed.txt", "ctest_passed.txt", "junit_pytest_passed.xml",
        "gtest.xml", "gtest.json", "console_gtest_passed.txt", "pytest_verbose.txt"}) {
    const Report report = read_golden(name);
    EXPECT_TRUE(names_passes(report)) << name << ": " << report.passes.size();
  }
  EXPECT_FALSE(names_passes(read_golden("cargo_quiet.txt")));
  EXPECT_FALSE(names_passes(read_golden("go_packages.txt")));
}

}  // namespace
}  // namespace muniment::evidence::reports
