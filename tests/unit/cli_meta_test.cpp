// The report of the meta-validation: its summary never states more than the criteria.
#include <gtest/gtest.h>

#include "cli/meta/report.hpp"

namespace muniment::cli {
namespace {

std::vector<CriterionResult> results_with(std::size_t met, std::size_t total) {
  std::vector<CriterionResult> results;
  for (std::size_t i = 0; i < total; ++i)
    results.push_back({static_cast<int>(i + 1), "criterion", i < met, i < met ? "checked" : "refused"});
  return results;
}

TEST(MetaSummary, AllAreMetOnlyIfEachOneIs) {
  EXPECT_TRUE(summarize(results_with(7, 7)).all_met);
  EXPECT_EQ(summarize(results_with(7, 7)).percentage, 100);
  for (std::size_t met = 0; met < 7; ++met) {
    EXPECT_FALSE(summarize(results_with(met, 7)).all_met) << met;
    EXPECT_LT(summarize(results_with(met, 7)).percentage, 100) << met;
    EXPECT_EQ(summarize(results_with(met, 7)).met, met);
  }
}

TEST(MetaSummary, NoCriteriaAreNotASuccess) {
  EXPECT_FALSE(summarize({}).all_met);
  EXPECT_EQ(summarize({}).percentage, 0);
}

TEST(MetaSummary, ThePercentageIsRoundedDown) {
  EXPECT_EQ(summarize(results_with(6, 7)).percentage, 85.7);
  EXPECT_EQ(summarize(results_with(9'999, 10'000)).percentage, 99.9);
}

TEST(MetaSummary, TheTextNamesEachCriterionThatIsNotMet) {
  EXPECT_EQ(summary_text(results_with(7, 7)), "7 of 7 criteria are met (100 %)");
  EXPECT_EQ(summary_text(results_with(1, 3)), "1 of 3 criteria are met (33.3 %). Not met: 2 criterion, 3 criterion");
}

TEST(MetaReport, TheJsonHasEachCriterionAndTheSummary) {
  json::Writer out;
  write_report(out.begin_object(), "r1", results_with(1, 2));
  EXPECT_EQ(std::move(out.end_object()).text(),
            R"({"run_id":"r1","criteria":[{"number":1,"name":"criterion","met":true,"detail":"checked"},)"
            R"({"number":2,"name":"criterion","met":false,"detail":"refused"}],)"
            R"("summary":{"total_criteria":2,"met":1,"completion_percentage":50,"all_criteria_met":false}})");
}

}  // namespace
}  // namespace muniment::cli
