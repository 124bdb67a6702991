// Tests of user input: times, misspelt run ids, and examples that fit the commands.
#include <gtest/gtest.h>

#include "base/config/prices.hpp"
#include "cli/connect/late_followers.hpp"
#include "cli/show/costs.hpp"
#include "cli/time_option.hpp"
#include "client/connect/similar_runs.hpp"
#include "client/examples.hpp"

namespace muniment::cli {
namespace {

TEST(Times, AnAgeADateAndRfc3339AreTimes) {
  const Time now = *parse_time("2026-11-21T10:00:00Z");
  EXPECT_EQ(*read_time("90s", now), "2026-11-21T09:58:30.000000Z");
  EXPECT_EQ(*read_time("15m", now), "2026-11-21T09:45:00.000000Z");
  EXPECT_EQ(*read_time("1h", now), "2026-11-21T09:00:00.000000Z");
  EXPECT_EQ(*read_time("2d", now), "2026-11-19T10:00:00.000000Z");
  EXPECT_EQ(*read_time("0s", now), "2026-11-21T10:00:00.000000Z");
  EXPECT_EQ(*read_time("2026-11-20", now), "2026-11-20T00:00:00.000000Z");
  EXPECT_EQ(*read_time("2026-11-20T01:02:03+01:00", now), "2026-11-20T01:02:03+01:00");
}

TEST(Times, AnythingElseIsRefusedWithTheFormsOfATime) {
  for (const std::string_view text : {"", "h", "1", "1w", "-1h", "1.5h", "1 h", "01h", "yesterday", "2026-13-01",
                                      "2026-11-21T10:00", "999999999999d"}) {
    const auto time = read_time(text, Time{0});
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_NE(time.error().message.find("90s, 15m, 1h, 2d"), std::string::npos) << time.error().message;
  }
}

TEST(SimilarIds, ThoseThatTheWordBeginsAreBeforeThoseThatAreNear) {
  const std::vector<std::string> ids = {"nightly-17", "nightly-18", "nightly-18-again", "release", "nightly-19"};
  EXPECT_EQ(similar_ids("nightly-1", ids), (std::vector<std::string>{"nightly-17", "nightly-18", "nightly-19"}));
  EXPECT_EQ(similar_ids("nigthly-18", ids).front(), "nightly-18");
  EXPECT_EQ(similar_ids("RELEASE", ids), std::vector<std::string>{"release"});
  EXPECT_EQ(similar_ids("relaese", ids), std::vector<std::string>{"release"});
}

TEST(SimilarIds, WhatIsFarAwayIsNotNamed) {
  EXPECT_TRUE(similar_ids("zzzzzz", {"nightly-17", "ab"}).empty());
  EXPECT_TRUE(similar_ids("x", {"y", "ab"}).empty());
  EXPECT_TRUE(similar_ids("", {"y"}).empty());
  EXPECT_TRUE(similar_ids(std::string(200, 'a'), {std::string(199, 'a')}).empty());
}

TEST(Examples, AnUnknownPathHasNone) {
  EXPECT_TRUE(example_of("run nope").empty());
  EXPECT_TRUE(example_of("run list").starts_with("muniment run list "));
}

TEST(Prices, TheVersionFollowsFromThePricesAndNotFromTheirSpelling) {
  const auto version = [](const std::string& text) {
    const auto prices = parse_prices(text);
    EXPECT_TRUE(prices.ok()) << text;
    return version_of(*prices);
  };
  const std::string first = version(R"({"b":{"input":2.5,"output":10,"cache_write":3},"a":{"output":1,"input":0}})");
  EXPECT_EQ(first.size(), 12u);
  EXPECT_EQ(version(R"({ "a":{"input":0.0,"output":1e0}, "b":{"cache_write":3,"output":10.0,"input":25e-1}})"), first);
  EXPECT_NE(version(R"({"a":{"input":0,"output":1},"b":{"input":2.5,"output":10}})"), first)
      << "no price for cache writes";
  EXPECT_NE(version(""), first);
}

TEST(Costs, AnEstimateIsMarkedAndSeveralCurrenciesHaveNoAmount) {
  const auto text = [](const char* cost) { return cost_text(json::parse(cost)->root()); };
  EXPECT_EQ(text(R"({"amount":"0.0125","currency":"USD"})"), "0.0125 USD");
  EXPECT_EQ(text(R"({"amount":"12.5","currency":"USD","estimated":"0.5","price_list":"x"})"), "≈12.50 USD");
  EXPECT_EQ(text(R"({"amount":null,"currency":"mixed"})"), "mixed");
  EXPECT_EQ(cost_text(json::Value()), "");
}

TEST(LateFollowers, TheSentenceNamesEventsTimeEffectAndCommand) {
  const Time since = *parse_time("2026-11-21T10:00:00Z");
  const std::string text = explained({"search", 1204, since}, Time{since.micros + 750'000'000});
  EXPECT_EQ(text,
            "search by 1,204 events since 2026-11-21T10:00:00Z (12 min 30 s): queries do not find newer passages. It "
            "catches up by itself; if the number does not fall: muniment doctor");
  EXPECT_TRUE(explained({"report", 1, std::nullopt}, since).starts_with("report by 1 event: "));
}

}  // namespace
}  // namespace muniment::cli
