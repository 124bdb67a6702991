// Tests of query plans: markup, lanes, the fusion of their lists, and the effect of reranking.
#include <gtest/gtest.h>

#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "base/limits.hpp"
#include "retrieval/plan/blend.hpp"
#include "retrieval/plan/expansions.hpp"
#include "retrieval/plan/fusion.hpp"
#include "retrieval/plan/markup.hpp"
#include "retrieval/plan/profile.hpp"

namespace muniment::retrieval {
namespace {

using Strings = std::vector<std::string>;

const Profile& profile(std::string_view name) { return **find_profile(name); }

Markup parsed(std::string_view query) { return parse_markup(query); }

TEST(Markup, EveryFilterIsReadAndTheRestIsText) {
  const Markup markup =
      parsed("in:notes port  type:markdown tag:legal tag:\"two words\" run:r1 \"exact words\" of proxy");
  EXPECT_EQ(markup.text, "port of proxy");
  EXPECT_EQ(markup.phrases, Strings{"exact words"});
  EXPECT_EQ(markup.corpora, Strings{"notes"});
  EXPECT_EQ(markup.types, Strings{"markdown"});
  EXPECT_EQ(markup.tags, (Strings{"legal", "two words"}));
  EXPECT_EQ(markup.runs, Strings{"r1"});
  EXPECT_EQ(markup.filters, (Strings{"in:notes", "type:markdown", "tag:legal", "tag:\"two words\"", "run:r1"}));
  const Filter filter = filter_of(markup);
  EXPECT_EQ(filter.all_of,
            (std::vector<Strings>{{"corpus:notes"}, {"type:markdown"}, {"run:r1"}, {"tag:legal"}, {"tag:two words"}}));
}

TEST(Markup, ADayIsAWholeDay) {
  const Markup markup = parsed("before:2026-01-02 after:2026-01-01 asof:2026-01-10 x");
  EXPECT_EQ(format_time(*markup.before), "2026-01-02T00:00:00.000000Z");
  EXPECT_EQ(format_time(*markup.after), "2026-01-01T23:59:59.999999Z");
  EXPECT_EQ(format_time(*markup.as_of), "2026-01-10T23:59:59.999999Z");
  EXPECT_EQ(format_time(*parsed("asof:2026-01-10T12:00:00+02:00").as_of), "2026-01-10T10:00:00.000000Z");
}

TEST(Markup, WhatIsNoFilterStaysText) {
  for (const char* text : {"std::vector", "https://example.org/a?b=c", "ev://run/r1#e5", "note:this", "in::x",
                           "type://y", "Before:x", "begin:2026-01-01", "a:b", ":", "10:30", "within:x"}) {
    EXPECT_EQ(parsed(text).text, text);
  }
  EXPECT_EQ(parsed("he said \"so").text, "he said \"so");  // an unterminated quote
  EXPECT_EQ(parsed("\"\" \"  \"").phrases, Strings{});
  EXPECT_EQ(parsed("AND OR NOT -x +y (z) *").text, "AND OR NOT -x +y (z) *");
}

TEST(Markup, AFilterWithoutAValidValueIsText) {
  for (const char* text : {"before:yesterday x", "after:2026-02-30", "asof:2026-13-01T00:00:00Z", "in: notes",
                           "tag:\"\" x", "type: string", "TypeError: type: string expected", "before:each",
                           "type:string", "type:.x", "in:", "the hook before: runs"}) {
    const Markup markup = parsed(text);
    EXPECT_EQ(markup.text, text);
    EXPECT_EQ(markup.filters, Strings{});
    EXPECT_TRUE(filter_of(markup).empty()) << text;
  }
  EXPECT_EQ(parsed("type:message.added x").types, Strings{"message.added"});
}

TEST(Markup, TheNarrowerOfTwoDatesCounts) {
  const Markup markup = parsed(
      "after:2026-01-01 after:2026-01-02 before:2026-03-02 before:2026-03-03 asof:2026-05-02 "
      "asof:2026-05-01");
  EXPECT_EQ(format_time(*markup.after), "2026-01-02T23:59:59.999999Z");
  EXPECT_EQ(format_time(*markup.before), "2026-03-02T00:00:00.000000Z");
  EXPECT_EQ(format_time(*markup.as_of_begin), "2026-05-01T00:00:00.000000Z");
}

TEST(Markup, FiltersBeyondTheLimitAreText) {
  std::string many;
  for (int i = 0; i < 65; i++) many += "tag:t" + std::to_string(i) + " ";
  const Markup markup = parsed(many);
  EXPECT_EQ(markup.tags.size(), 64u);
  EXPECT_EQ(markup.text, "tag:t64");
}

TEST(Markup, QuotationMarksInALongQueryOnlyQuote) {
  std::string words;
  for (std::size_t i = 0; i < limits::phrase_other_words_max; i++) words += " word";
  const Markup at_limit = parsed("in:notes \"exact words\"" + words);
  EXPECT_EQ(at_limit.phrases, std::vector<std::string>{"exact words"});
  const Markup over = parsed("one in:notes \"exact words\"" + words);
  EXPECT_TRUE(over.phrases.empty());
  EXPECT_EQ(over.text, "one exact words" + words);
  EXPECT_EQ(over.corpora, std::vector<std::string>{"notes"});
}

TEST(Markup, ATagCanBecomeText) {
  Markup markup = parsed("docker tag:latest tag:\"two words\" tag:legal");
  take_tag_as_text(markup, "latest");
  take_tag_as_text(markup, "two words");
  EXPECT_EQ(markup.text, "docker tag:latest tag:\"two words\"");
  EXPECT_EQ(markup.tags, Strings{"legal"});
  EXPECT_EQ(markup.filters, Strings{"tag:legal"});
}

std::string spelled(const std::vector<LaneWeight>& lanes) {
  std::string text;
  for (const LaneWeight& lane : lanes)
    text += std::string(lane.lane) + "=" + std::to_string(std::lround(lane.weight * 1000)) + " ";
  return text;
}

TEST(Profile, TheFirstSetWhoseLanesAreThereIsChosen) {
  const Profile& muniment = profile("");
  EXPECT_EQ(muniment.name, "muniment-1");
  const auto chosen = [&](LaneChoice choice, const Strings& available) {
    return spelled(choose_lanes(muniment, choice, available));
  };
  EXPECT_EQ(chosen(LaneChoice::all, {"hash", "lexical", "lsa", "encoder"}), "lexical=550 encoder=450 ");
  EXPECT_EQ(chosen(LaneChoice::all, {"hash", "lexical", "encoder"}), "lexical=550 encoder=450 ");
  EXPECT_EQ(chosen(LaneChoice::all, {"hash", "lexical", "lsa"}), "lexical=590 lsa=410 ");
  EXPECT_EQ(chosen(LaneChoice::all, {"hash", "lexical"}), "lexical=750 hash=250 ");
  EXPECT_EQ(chosen(LaneChoice::all, {"lexical"}), "lexical=1000 ");
  EXPECT_EQ(chosen(LaneChoice::lexical_only, {"hash", "lexical", "lsa", "encoder"}), "lexical=1000 ");
  EXPECT_EQ(chosen(LaneChoice::vectors_only, {"hash", "lexical", "lsa", "encoder"}), "encoder=1000 ");
  EXPECT_EQ(chosen(LaneChoice::vectors_only, {"lexical"}), "");
}

TEST(Profile, TheTypoLaneJoinsWhereWordsFoundTooLittle) {
  const Strings available = {"hash", "lexical", "lsa"};
  const auto chosen = choose_lanes(default_profile(), LaneChoice::all, available);
  EXPECT_FALSE(typo_lane_joins(chosen, 10, 10));
  ASSERT_TRUE(typo_lane_joins(chosen, 9, 10));
  EXPECT_EQ(spelled(with_typo_lane(default_profile(), chosen)), "lexical=437 lsa=304 hash=259 ");
  EXPECT_FALSE(typo_lane_joins(choose_lanes(default_profile(), LaneChoice::lexical_only, available), 0, 10));
}

TEST(Profile, AnUnknownOneNamesThoseThereAre) {
  const auto found = find_profile("muniment-0");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Errc::invalid_argument);
  EXPECT_EQ(found.error().message, "no such profile; there are muniment-1, kairos");
}

TEST(Profile, AProbeIsStrongWhenItsFirstHitLeadsClearly) {
  const auto strong = [](std::vector<double> scores) { return probe_is_strong(default_profile(), scores); };
  EXPECT_TRUE(strong({13.1, 10}));
  EXPECT_FALSE(strong({12.9, 10}));
  EXPECT_FALSE(strong({12.9}));
  EXPECT_FALSE(strong({}));
}

TEST(Expansions, AQuestionIsAlsoAskedWithoutItsFunctionWords) {
  EXPECT_EQ(heuristic_expansions("What is the port of the proxy?").lexical, Strings{"port proxy?"});
  EXPECT_EQ(heuristic_expansions("Wie heißt das Haus").vector, Strings{"heißt Haus"});
  EXPECT_EQ(heuristic_expansions("port proxy").lexical, Strings{});
  EXPECT_EQ(heuristic_expansions("to be or not to be").lexical, Strings{});
  EXPECT_EQ(heuristic_expansions("").lexical, Strings{});
}

using Hits = std::vector<Hit>;

std::vector<ChunkId> order_of(const std::vector<Fused>& fused) {
  std::vector<ChunkId> ids;
  for (const Fused& one : fused) ids.push_back(one.chunk);
  return ids;
}

double score_of(const std::vector<Fused>& fused, ChunkId chunk) {
  for (const Fused& one : fused) {
    if (one.chunk == chunk) return one.score;
  }
  return -1;
}

TEST(Fusion, KairosIsTheSeedsArithmetic) {
  const Hits original = {{1, 9}, {2, 8}, {3, 7}, {5, 1}}, expansion = {{3, 4}, {4, 3}, {2, 2}, {6, 1}};
  const RankedList lists[] = {{"lexical", 1, true, original}, {"lexical", 1, false, expansion}};
  const auto fused = fuse(profile("kairos"), lists);
  EXPECT_NEAR(score_of(fused, 1), 2.0 / 61 + .05, 1e-12);
  EXPECT_NEAR(score_of(fused, 2), 2.0 / 62 + 1.0 / 63 + .02, 1e-12);
  EXPECT_NEAR(score_of(fused, 3), 2.0 / 63 + 1.0 / 61 + .05, 1e-12);  // one bonus, for its best rank
  EXPECT_NEAR(score_of(fused, 4), 1.0 / 62 + .02, 1e-12);
  EXPECT_NEAR(score_of(fused, 5), 2.0 / 64, 1e-12);
  EXPECT_NEAR(score_of(fused, 6), 1.0 / 64, 1e-12);
  EXPECT_EQ(order_of(fused), (std::vector<ChunkId>{3, 1, 2, 4, 5, 6}));
  EXPECT_NEAR(confidence_of(profile("kairos"), .05 + 3.0 / 61, lists), 1, 1e-12);
}

TEST(Fusion, MinMaxWeighsScaledScoresByLane) {
  const Hits words = {{1, 20}, {2, 15}, {3, 10}}, vectors = {{2, .9}, {4, .5}, {1, .1}};
  const RankedList lists[] = {{"lexical", .65, true, words}, {"lsa", .35, true, vectors}};
  const auto fused = fuse(default_profile(), lists);
  EXPECT_NEAR(score_of(fused, 1), .65, 1e-12);
  EXPECT_NEAR(score_of(fused, 2), .65 * .5 + .35, 1e-12);
  EXPECT_NEAR(score_of(fused, 3), 0, 1e-12);
  EXPECT_NEAR(score_of(fused, 4), .35 * .5, 1e-12);
  EXPECT_EQ(order_of(fused), (std::vector<ChunkId>{2, 1, 4, 3}));
  ASSERT_EQ(fused[0].lanes.size(), 2u);
  EXPECT_EQ(fused[0].lanes[0].second, 15);
  EXPECT_EQ(fused[0].best_rank, 1);
}

TEST(Fusion, AnExpansionCountsHalfOfTheOriginalQuery) {
  const Hits original = {{1, 2}, {2, 1}}, expansion = {{2, 2}, {1, 1}};
  const RankedList lists[] = {{"lexical", 1, true, original}, {"lexical", 1, false, expansion}};
  const auto fused = fuse(default_profile(), lists);
  EXPECT_NEAR(score_of(fused, 1), 2.0 / 3, 1e-12);
  EXPECT_NEAR(score_of(fused, 2), 1.0 / 3, 1e-12);
}

TEST(Fusion, ALaneWhoseBestHitsStandOutWeighsMore) {
  Hits clear, flat;
  for (ChunkId id = 1; id <= 100; id++) {
    clear.push_back({id, id == 1 ? 10 : 1 - .01 * id});
    flat.push_back({id, 1 - .01 * id});
  }
  std::vector<RankedList> lists = {{"lexical", .5, true, clear}, {"lsa", .5, true, flat}, {"lsa", .5, false, flat}};
  weigh_lanes(default_profile(), lists);
  EXPECT_GT(lists[0].weight, .8);
  EXPECT_EQ(lists[1].weight, lists[2].weight);
  EXPECT_NEAR(lists[0].weight + lists[1].weight, 1, 1e-12);
  EXPECT_NEAR(standing_out(default_profile(), flat), 19.0 / 99, 1e-12);
  EXPECT_EQ(standing_out(default_profile(), Hits{{1, 2}}), 1);
  std::vector<RankedList> fixed = {{"lexical", 1, true, clear}, {"lsa", 1, true, flat}};
  weigh_lanes(profile("kairos"), fixed);
  EXPECT_EQ(fixed[0].weight, 1);
}

TEST(Fusion, AFlatListOfLsaLosesMoreWeightThanOneOfAnotherLane) {
  Hits clear, flat;
  for (ChunkId id = 1; id <= 100; id++) {
    clear.push_back({id, id == 1 ? 10 : 1 - .01 * id});
    flat.push_back({id, 1 - .01 * id});
  }
  const double clear_part = standing_out(default_profile(), clear), flat_part = 19.0 / 99;
  std::vector<RankedList> encoder = {{"lexical", .6, true, clear}, {"encoder", .4, true, flat}};
  std::vector<RankedList> lsa = {{"lexical", .6, true, clear}, {"lsa", .4, true, flat}};
  weigh_lanes(default_profile(), encoder);
  weigh_lanes(default_profile(), lsa);
  EXPECT_NEAR(encoder[1].weight, .4 * flat_part / (.4 * flat_part + .6 * clear_part), 1e-12);
  EXPECT_NEAR(lsa[1].weight, .4 * flat_part * flat_part / (.4 * flat_part * flat_part + .6 * clear_part), 1e-12);
}

TEST(Fusion, AHitUpToTheNoiseOfItsLaneIsDropped) {
  Hits hits = {{1, .5}, {2, .16}, {3, .05}};
  const std::uint32_t words[] = {60, 60, 60};
  discount_short(default_profile(), "hash", hits, words);
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].chunk, 1u);
}

TEST(Fusion, ACandidateThatNoWordSupportsIsNearOnlyAboveItsFloor) {
  const Hits none, words = {{1, 2.0}}, vectors = {{1, .3}, {2, .6}, {3, .525}, {4, .4}};
  const RankedList lists[] = {{"lexical", .5, true, words}, {"encoder", .5, true, vectors}};
  const RankedList without_words[] = {{"lexical", .5, true, none}, {"encoder", .5, true, vectors}};
  const auto near = [&](std::span<const RankedList> of, const Profile& profile) {
    std::set<ChunkId> found;
    for (const Fused& one : fuse(profile, of)) {
      if (is_near(profile, one, of)) found.insert(one.chunk);
    }
    return found;
  };
  EXPECT_EQ(near(lists, default_profile()), (std::set<ChunkId>{1, 2})) << "at the floor is not above it";
  const Hits letters = {{7, .3}};
  const RankedList with_letters[] = {
      {"lexical", .4, true, none}, {"encoder", .4, true, vectors}, {"hash", .2, true, letters}};
  const RankedList only_letters[] = {{"lexical", .8, true, none}, {"hash", .2, true, letters}};
  EXPECT_EQ(near(with_letters, default_profile()), (std::set<ChunkId>{2}));
  EXPECT_EQ(near(only_letters, default_profile()), (std::set<ChunkId>{7}));
  EXPECT_EQ(near(without_words, default_profile()), (std::set<ChunkId>{2}));
  EXPECT_EQ(near(std::span(lists).last(1), default_profile()), (std::set<ChunkId>{1, 2, 3, 4})) << "mode vector";
  EXPECT_EQ(near(lists, **find_profile("kairos")), (std::set<ChunkId>{1, 2, 3, 4}));
}

TEST(Fusion, TiesGoToTheBetterRankThenToTheLowerId) {
  const Hits words = {{9, 1}}, vectors = {{4, 1}, {3, 1}};
  const RankedList lists[] = {{"lexical", .5, true, words}, {"lsa", .5, true, vectors}};
  EXPECT_EQ(order_of(fuse(default_profile(), lists)), (std::vector<ChunkId>{4, 9, 3}));
  EXPECT_TRUE(fuse(default_profile(), {}).empty());
}

TEST(Fusion, AShortChunksVectorCountsForLess) {
  Hits hits = {{1, .9}, {2, .8}, {3, .7}};
  const std::uint32_t words[] = {5, 60, 4'294'967'295u};
  discount_short(default_profile(), "lsa", hits, words);
  EXPECT_EQ(hits[0].chunk, 3u);  // unknown length: not changed
  EXPECT_NEAR(hits[0].score, .7, 1e-6);
  EXPECT_NEAR(hits[1].score, .8 * 60 / 80, 1e-12);
  EXPECT_NEAR(hits[2].score, .9 * 5 / 25, 1e-12);
  Hits same = {{1, .9}, {2, .8}};
  discount_short(default_profile(), "http", same, words);
  discount_short(profile("kairos"), "lsa", same, words);
  EXPECT_EQ(same[0].score, .9);
}

struct Lists {
  std::vector<Hits> hits;
  std::vector<RankedList> lists;
};

Lists arbitrary_lists(std::uint32_t seed) {
  static constexpr std::string_view lanes[] = {"lexical", "lsa", "encoder"};
  std::mt19937 random(seed);
  Lists made;
  const std::size_t count = 1 + random() % 5;
  for (std::size_t i = 0; i < count; i++) {
    std::vector<ChunkId> ids(40);
    for (std::size_t j = 0; j < ids.size(); j++) ids[j] = static_cast<ChunkId>(j + 1);
    std::shuffle(ids.begin(), ids.end(), random);
    ids.resize(random() % 30);
    Hits hits;
    for (const ChunkId id : ids) hits.push_back({id, static_cast<double>(random() % 20)});
    std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.score > b.score; });
    made.hits.push_back(std::move(hits));
  }
  for (std::size_t i = 0; i < count; i++)
    made.lists.push_back({lanes[random() % 3], .3, random() % 2 == 0, made.hits[i]});
  return made;
}

TEST(FusionProperty, TheOrderOfTheListsDoesNotMatter) {
  EXPECT_TRUE(rc::check([](std::uint32_t seed) {
    const Lists made = arbitrary_lists(seed);
    std::vector<RankedList> shuffled = made.lists;
    std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(seed + 1));
    for (const char* name : {"muniment-1", "kairos"}) {
      const auto first = fuse(profile(name), made.lists), second = fuse(profile(name), shuffled);
      RC_ASSERT(order_of(first) == order_of(second));
      for (std::size_t i = 0; i < first.size(); i++) RC_ASSERT(first[i].score == second[i].score);
    }
  }));
}

std::size_t rank_of(const std::vector<Fused>& fused, ChunkId chunk) {
  const auto ids = order_of(fused);
  return static_cast<std::size_t>(std::find(ids.begin(), ids.end(), chunk) - ids.begin());
}

TEST(FusionProperty, ABetterPlaceInOneListNeverRanksLower) {
  EXPECT_TRUE(rc::check([](std::uint32_t seed) {
    Lists made = arbitrary_lists(seed);
    Hits& list = made.hits[seed % made.hits.size()];
    RC_PRE(list.size() > 3);
    // Neither the first nor the last, so that the scale is unchanged.
    const std::size_t at = 2 + seed % (list.size() - 3);
    const ChunkId chunk = list[at].chunk;
    std::vector<std::size_t> before;
    for (const char* name : {"muniment-1", "kairos"}) before.push_back(rank_of(fuse(profile(name), made.lists), chunk));
    // The hit takes the place and the score of the one above.
    std::swap(list[at].chunk, list[at - 1].chunk);
    std::vector<std::size_t> after;
    for (const char* name : {"muniment-1", "kairos"}) after.push_back(rank_of(fuse(profile(name), made.lists), chunk));
    RC_ASSERT(after[0] <= before[0]);
    RC_ASSERT(after[1] <= before[1]);
  }));
}

TEST(FusionProperty, TheScoreOfTheBestIsAtMostTheSumOfTheWeights) {
  EXPECT_TRUE(rc::check([](std::uint32_t seed) {
    const Lists made = arbitrary_lists(seed);
    const auto fused = fuse(default_profile(), made.lists);
    for (const Fused& one : fused) {
      RC_ASSERT(one.score >= 0 && one.score <= .9 + 1e-9);
      const double confidence = confidence_of(default_profile(), one.score, made.lists);
      RC_ASSERT(confidence >= 0 && confidence <= 1);
    }
    for (std::size_t i = 1; i < fused.size(); i++) {
      RC_ASSERT(confidence_of(profile("kairos"), fused[i - 1].score, made.lists) >=
                confidence_of(profile("kairos"), fused[i].score, made.lists));
    }
  }));
}

std::vector<Blended> blended(std::string_view name, const std::vector<double>& rerank) {
  std::vector<Reranked> candidates;
  for (std::size_t i = 0; i < rerank.size(); i++)
    candidates.push_back({static_cast<ChunkId>(i + 1), 1 - .01 * static_cast<double>(i), rerank[i]});
  return blend(profile(name), candidates, 0);
}

double blended_score(const std::vector<Blended>& all, ChunkId chunk) {
  for (const Blended& one : all) {
    if (one.chunk == chunk) return one.score;
  }
  return -1;
}

TEST(Blend, KairosIsTheSeedsArithmetic) {
  std::vector<double> rerank(12, 0.0);
  rerank[1] = 1;
  rerank[3] = .5;
  rerank[10] = 1;
  const auto result = blended("kairos", rerank);
  EXPECT_NEAR(blended_score(result, 1), .75, 1e-12);
  EXPECT_NEAR(blended_score(result, 2), .75 / 2 + .25, 1e-12);  // .625
  EXPECT_NEAR(blended_score(result, 4), .60 / 4 + .40 * .5, 1e-12);
  EXPECT_NEAR(blended_score(result, 11), .40 / 11 + .60, 1e-12);  // .636: it overtakes rank 2 for this seed
  EXPECT_EQ(result[0].chunk, 1u);
  EXPECT_EQ(result[1].chunk, 11u);
  EXPECT_EQ(result[1].from, 11u);
}

TEST(Blend, WithoutAnyRerankScoresNothingChanges) {
  const std::vector<Reranked> candidates = {{7, .9, {}, 0}, {5, .8, {}, 0}, {3, .7, {}, 1}};
  const auto plain = blend(default_profile(), candidates, 0);
  EXPECT_EQ(plain[0].chunk, 7u);
  EXPECT_EQ(plain[0].score, .9);
  EXPECT_EQ(plain[2].chunk, 3u);
  EXPECT_EQ(blend(default_profile(), candidates, .5)[0].chunk, 3u);  // feedback still applies
}

TEST(BlendProperty, MunimentIsMonotoneBothWays) {
  EXPECT_TRUE(rc::check([](std::vector<std::uint8_t> values, std::uint8_t which, std::uint8_t more) {
    RC_PRE(values.size() > 1);
    std::vector<double> rerank;
    for (const std::uint8_t value : values) rerank.push_back(value / 255.0);
    const auto place = [](const std::vector<Blended>& all, ChunkId chunk) {
      return std::find_if(all.begin(), all.end(), [&](const Blended& b) { return b.chunk == chunk; }) - all.begin();
    };
    const auto chunk = static_cast<ChunkId>(which % rerank.size() + 1);
    const auto before = blended("muniment-1", rerank);
    // If two have the same rerank score, their order is unchanged.
    for (std::size_t i = 0; i + 1 < rerank.size(); i++) {
      if (rerank[i] >= rerank[i + 1])
        RC_ASSERT(place(before, static_cast<ChunkId>(i + 1)) < place(before, static_cast<ChunkId>(i + 2)));
    }
    rerank[chunk - 1] = std::min(1.0, rerank[chunk - 1] + more / 255.0);
    RC_ASSERT(place(blended("muniment-1", rerank), chunk) <= place(before, chunk));
  }));
}

}  // namespace
}  // namespace muniment::retrieval
