// Tests of the local reranker: coverage, adjacent terms, and empty inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "retrieval/rerank/local_reranker.hpp"

namespace muniment::retrieval {
namespace {

std::vector<double> scores_of(std::string_view query, const std::vector<std::pair<std::string, double>>& passages,
                              std::string_view language = "en") {
  std::vector<LocalCandidate> candidates;
  for (const auto& [text, score] : passages) candidates.push_back({text, language, score});
  return rerank_locally(query, candidates);
}

TEST(LocalReranker, AllWordsOnceGoBeforeOneWordOften) {
  const auto scores =
      scores_of("proxy port",
                {{"The proxy, a proxy of proxies.", .6}, {"The port of the proxy.", .6}, {"Bread and butter.", .1}});
  EXPECT_GT(scores[1], scores[0]);
  EXPECT_GT(scores[0], scores[2]);
}

TEST(LocalReranker, AWordThatFewHoldCountsMore) {
  const auto scores =
      scores_of("port tide", {{"A port.", .5}, {"The tide.", .5}, {"Some port.", .1}, {"Any port.", .1}});
  EXPECT_GT(scores[1], scores[0]);
}

TEST(LocalReranker, WhoeverStandsNearTheGoodOnesIsLifted) {
  const auto scores = scores_of("aqueduct", {{"aqueduct channel arches water", .9},
                                             {"aqueduct arches channel stone", .8},
                                             {"channel arches stone water", .3},
                                             {"wine after dinner", .3}});
  EXPECT_GT(scores[2], scores[3]);
}

TEST(LocalReranker, FormsOfAWordMeet) {
  const auto english = scores_of("painting", {{"She painted.", .5}, {"She sang.", .5}});
  EXPECT_GT(english[0], english[1]);
  const auto unstemmed = scores_of("painting", {{"She painted.", .5}, {"She sang.", .5}}, "none");
  EXPECT_EQ(unstemmed[0], unstemmed[1]);
}

TEST(LocalReranker, WithNothingToGoByTheOrderStays) {
  EXPECT_TRUE(scores_of("x", {}).empty());
  for (const char* query : {"", "the of and", "\xff\xfe", "unknown"}) {
    const auto scores = scores_of(query, {{"one thing", .9}, {"another matter", .5}, {"", .2}, {"\xff", .1}});
    EXPECT_TRUE(std::is_sorted(scores.rbegin(), scores.rend())) << query;
    for (const double score : scores) EXPECT_TRUE(score >= 0 && score <= 1) << score;
  }
  EXPECT_EQ(scores_of("port", {{"port", 1}}).size(), 1U);
}

TEST(LocalReranker, EqualInputsHaveEqualScoresToTheLastBit) {
  std::vector<std::pair<std::string, double>> passages;
  for (int i = 0; i < 40; ++i)
    passages.push_back({"port " + std::to_string(i % 7) + " proxy word" + std::to_string(i), 1.0 / (i + 1)});
  EXPECT_EQ(scores_of("proxy port 3", passages), scores_of("proxy port 3", passages));
  for (const double score : scores_of("proxy port 3", passages)) EXPECT_TRUE(score >= 0 && score <= 1);
}

}  // namespace
}  // namespace muniment::retrieval
