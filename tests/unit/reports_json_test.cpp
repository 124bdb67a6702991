// Tests of SARIF, GoogleTest JSON and the events of go test.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "unit/reports_golden.hpp"

namespace muniment::evidence::reports {
namespace {

std::string sarif(std::string_view run) {
  return "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"t\",\"rules\":[{\"id\":\"R1\","
         "\"defaultConfiguration\":{\"level\":\"error\"}},{\"id\":\"R2\"}]}}," +
         std::string(run) + "}]}";
}

TEST(Sarif, AWarningIsNoFailure) {
  const Report report = read_golden("sarif_clang.sarif");
  EXPECT_TRUE(report.analysis);
  EXPECT_EQ(report.counts, counts_of(3, 0, 0));
}

TEST(Sarif, AnErrorFailsAndASuppressedResultIsSkipped) {
  const Report report = read_golden("sarif_error.sarif");
  EXPECT_EQ(report.counts, counts_of(1, 1, 1));
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_TRUE(report.failures[0].ends_with("a.c")) << report.failures[0];
}

TEST(Sarif, AReportWithoutFindingsIsClean) {
  const Report report = read_golden("sarif_clean.sarif");
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.counts, Counts{});
}

TEST(Sarif, AResultWithoutALevelHasThatOfItsRule) {
  EXPECT_EQ(
      read_text(
          sarif(
              "\"results\":[{\"ruleId\":\"R1\"},{\"ruleIndex\":0},{\"ruleId\":\"R2\"},{\"ruleIndex\":-1},{\"ruleIndex\":7}]"))
          .counts,
      counts_of(3, 2, 0));
}

TEST(Sarif, AResultOfAnotherKindIsNoFinding) {
  EXPECT_EQ(read_text(sarif("\"results\":[{\"ruleId\":\"R1\",\"kind\":\"pass\"}]")).counts, Counts{});
}

TEST(Sarif, ARuleIsFoundByItsReference) {
  const std::string_view head =
      "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"t\",\"rules\":["
      "{\"id\":\"W1\"}]},\"extensions\":[{\"name\":\"x\",\"rules\":[{\"id\":\"E1\","
      "\"guid\":\"g\",\"defaultConfiguration\":{\"level\":\"error\"}}]}]},\"results\":[";
  for (const std::string_view result :
       {R"({"rule":{"index":0,"toolComponent":{"index":0}}})", R"({"ruleId":"E1"})", R"({"rule":{"id":"E1"}})",
        R"({"rule":{"guid":"g"}})", R"({"ruleId":"E1/part"})", R"({"ruleId":"E1","level":"error","suppressions":[]})",
        R"({"ruleId":"E1","suppressions":[{"kind":"external","status":"underReview"}]})"})
    EXPECT_EQ(read_text("\xef\xbb\xbf" + std::string(head) + std::string(result) + "]}]}").counts, counts_of(0, 1, 0))
        << result;
  EXPECT_EQ(read_text(std::string(head) + R"({"rule":{"index":0}}]}]})").warnings, 1);
}

TEST(Sarif, AFindingOfAnEarlierScanDoesNotCount) {
  EXPECT_EQ(read_text(sarif("\"results\":[{\"ruleId\":\"R1\",\"baselineState\":\"absent\"}]")).counts, Counts{});
}

TEST(Sarif, ARunWithoutResultsDidNotTakePlace) {
  const Report report = read_text(sarif("\"columnKind\":\"utf16CodeUnits\""));
  EXPECT_FALSE(report.complete);
  EXPECT_NE(report.problem, "");
}

TEST(Sarif, ARunThatStatesItsFailureIsNotComplete) {
  EXPECT_EQ(read_text(sarif("\"results\":[],\"invocations\":[{\"executionSuccessful\":false}]")).problem,
            "the analysis states that its run failed");
}

TEST(Sarif, ALogWithoutRunsIsAProblem) {
  EXPECT_EQ(read_text("{\"$schema\":\"sarif-2.1.0\",\"runs\":[]}").problem, "the SARIF log contains no run");
}

// A hostile report has one long text, and as many bytes of references to it.
constexpr std::size_t half_bytes = 1 << 20;

// Returns as many copies of `item` as fit half_bytes, separated by commas.
std::string repeated(std::string_view item, std::size_t& times) {
  times = half_bytes / (item.size() + 1);
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text.append(i == 0 ? "" : ",").append(item);
  return text;
}

std::string sarif_of_rule(const std::string& rule, const std::string& results) {
  return R"({"version":"2.1.0","runs":[{"tool":{"driver":{"rules":[)" + rule + R"(]}},"results":[)" + results + "]}]}";
}

TEST(Sarif, ALongLevelOfARuleThatManyResultsReferToIsNoError) {
  std::size_t times = 0;
  const std::string results = repeated(R"({"ruleIndex":0})", times), level(half_bytes, 'e');
  const Report report =
      read_text(sarif_of_rule(R"({"id":"R","defaultConfiguration":{"level":")" + level + "\"}}", results));
  EXPECT_EQ(report.counts, counts_of(static_cast<std::int64_t>(times), 0, 0));
  EXPECT_EQ(report.problem, "");
}

TEST(Sarif, ALongIdOfARuleNamesItsResults) {
  std::size_t times = 0;
  const std::string id(half_bytes, 'i'), error = R"(","defaultConfiguration":{"level":"error"}})";
  const std::string results = R"({"ruleId":")" + id + "\"}," + repeated(R"({"ruleId":"i"})", times);
  const Report report = read_text(sarif_of_rule(R"({"id":")" + id + error, results));
  EXPECT_EQ(report.counts, counts_of(static_cast<std::int64_t>(times), 1, 0));
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_LE(report.failures[0].size(), test_name_bytes_max);
}

std::string gtest_of_failures(const std::string& suite, std::size_t& times) {
  const std::string tests = repeated(R"({"name":"A","status":"RUN","failures":[{}]})", times);
  const std::string count = std::to_string(times);
  return R"({"tests":)" + count + R"(,"failures":)" + count + R"(,"testsuites":[{"name":")" + suite + R"(","tests":)" +
         count + R"(,"testsuite":[)" + tests + "]}]}";
}

TEST(GTestJson, ALongNameOfASuiteWithManyFailuresIsCut) {
  std::size_t times = 0;
  const Report report = read_text(gtest_of_failures(std::string(half_bytes, 's'), times));
  EXPECT_EQ(report.counts, counts_of(0, static_cast<std::int64_t>(times), 0));
  EXPECT_EQ(report.problem, "");
  ASSERT_EQ(report.failures.size(), failures_kept_max);
  EXPECT_TRUE(report.failures.back().starts_with("sss"));
  EXPECT_LE(report.failures.back().size(), test_name_bytes_max);
}

TEST(GTestJson, ADisabledTestAndOneThatSkipsItselfAreSkipped) {
  const Report report = read_golden("gtest.json");
  EXPECT_EQ(report.counts, counts_of(2, 1, 2));
  EXPECT_EQ(report.failures, std::vector<std::string>{"Bad.Fails"});
}

TEST(GTestJson, AKeyThatIsThereTwiceIsAProblem) {
  EXPECT_NE(read_golden("gtest_duplicate_key.json").problem.find("twice"), std::string::npos);
}

TEST(GTestJson, FailuresThatTheTotalsHideCount) {
  const Report report = read_text(replaced(golden_report("gtest.json"), "\"failures\": 1", "\"failures\": 0"));
  EXPECT_EQ(report.counts.failed, 1);
  EXPECT_NE(report.note, "");
}

TEST(GTestJson, ACountThatIsNoIntegerIsAProblem) {
  for (const std::string_view count : {"\"2\"", "-2", "2.5", "1e30", "null"})
    EXPECT_NE(
        read_text(replaced(golden_report("gtest_passed.json"), "\"tests\": 2", "\"tests\": " + std::string(count)))
            .problem,
        "")
        << count;
}

TEST(GoEvents, APackageWithoutTestFilesCountsNothing) {
  EXPECT_EQ(read_golden("go_events.json").counts, counts_of(8, 0, 1));
}

TEST(GoEvents, APanicFailsTheTestAndThePackage) {
  EXPECT_EQ(read_golden("go_events_panic.json").counts, counts_of(7, 1, 1));
}

TEST(GoEvents, APackageThatDoesNotBuildIsOneFailedTest) {
  const Report report = read_text(
      "{\"ImportPath\":\"a\",\"Action\":\"build-fail\"}\n{\"Time\":\"2026-11-26T21:47:46Z\",\"Action\":\"start\",\"Package\":\"a\"}\n"
      "{\"Time\":\"2026-11-26T21:47:46Z\",\"Action\":\"fail\",\"Package\":\"a\",\"Elapsed\":0,\"FailedBuild\":\"a\"}\n");
  EXPECT_EQ(report.counts, counts_of(0, 1, 0));
  EXPECT_EQ(report.failures, std::vector<std::string>{"a [build failed]"});
}

TEST(GoEvents, ATestWithoutAResultContradictsAPackageThatPassed) {
  const Report report = read_text(
      "{\"Time\":\"t\",\"Action\":\"run\",\"Package\":\"a\",\"Test\":\"TestX\"}\n{\"Time\":\"t\",\"Action\":\"pass\",\"Package\":\"a\"}\n");
  EXPECT_NE(report.problem.find("have no result"), std::string::npos) << report.problem;
}

TEST(GoEvents, OtherJsonAmongTheEventsIsOutput) {
  const std::string text = "{\"level\":\"info\" broken\n" + golden_report("go_events.json");
  EXPECT_EQ(read_text(text).counts, counts_of(8, 0, 1));
  EXPECT_EQ(read_text(text).problem, "");
}

TEST(GoEvents, EventsOfMoreThanAJsonReportMayHaveAreRead) {
  std::string text = golden_report("go_events.json");
  const std::string output =
      R"({"Time":"t","Action":"output","Package":"a","Output":")" + std::string(half_bytes, 'x') + "\"}\n";
  for (int i = 0; i < 15; ++i) text.insert(0, output);
  text.insert(text.size(), R"({"Time":"t","Action":"pass","Package":"a"})"
                           "\n");
  ASSERT_GT(text.size(), json_report_bytes_max);
  ASSERT_LE(text.size(), report_bytes_max);
  EXPECT_EQ(read_text(text).problem, "");
  EXPECT_GE(read_text(text).counts.passed, 8);
}

TEST(GoEvents, AnEventOverTheLimitOfOneJsonTextIsNotRead) {
  const std::string events = golden_report("go_events.json"), head = R"({"Action":"output","Output":")", end = "\"}";
  const auto with_event_of = [&](std::size_t bytes) {
    return read_text(events + head + std::string(bytes - head.size() - end.size(), 'x') + end + "\n");
  };
  EXPECT_EQ(with_event_of(json_report_bytes_max).problem, "");
  EXPECT_EQ(with_event_of(json_report_bytes_max + 1).problem, "an event has 4.0 MiB; at most 4.0 MiB are read of one");
}

TEST(GoEvents, AnOpenPackageAtTheEndIsTruncated) { EXPECT_FALSE(read_golden("go_events_truncated.json").complete); }

}  // namespace
}  // namespace muniment::evidence::reports
