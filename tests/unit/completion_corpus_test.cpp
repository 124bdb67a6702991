// Tests of the completion gate with the corpus of tests/data/completion: how many cheats and how few honest pieces it
// blocks.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/completion_cases.hpp"

namespace muniment {
namespace {

using test::CompletionCase;
using test::CompletionScore;

// The values reached. The targets, also for the held-out half, are a recall of .95 and .02 false blocks
// (docs/benchmarks.md).
constexpr double recall_min = .94;
constexpr double class_recall_min = .8;
constexpr double false_blocks_max = .01;
constexpr double held_out_recall_min = .92;
constexpr double held_out_false_blocks_max = .02;
constexpr int cases_min = 300;
constexpr std::string_view vague_kind = "vague";  // texts without a fact, which only `text = "refuse"` refuses
constexpr int class_cases_min = 7;

const std::vector<CompletionCase>& corpus() {
  static const std::vector<CompletionCase> cases = test::read_completion_cases(MUNIMENT_COMPLETION_CASES);
  return cases;
}

struct Scores {
  CompletionScore overall;
  std::map<std::string, CompletionScore> classes;
  std::string wrong;  // a line for each wrong judgement
};

Scores scores_of(const std::vector<CompletionCase>& cases) {
  Scores scores;
  for (const CompletionCase& one : cases) {
    const auto judgement = judge_case(one);
    scores.overall.add(one, !judgement.can_complete);
    scores.classes[one.kind].add(one, !judgement.can_complete);
    if (judgement.can_complete != one.complete) scores.wrong += "\n  " + one.name + ": " + judgement.reason;
  }
  return scores;
}

TEST(CompletionCorpus, ItHasEnoughCasesOfEveryClassWithNamesOfTheirOwn) {
  std::set<std::string> names;
  std::map<std::string, int> classes;
  int honest = 0;
  for (const CompletionCase& one : corpus()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_TRUE(one.name.starts_with(one.kind + '/')) << one.name;
    EXPECT_FALSE(one.task.content.empty()) << one.name;
    EXPECT_EQ(one.complete, one.kind.starts_with("honest_") || one.kind == vague_kind) << one.name;
    if (one.kind != vague_kind) ++classes[one.kind];
    honest += one.complete ? 1 : 0;
  }
  const int all = static_cast<int>(names.size());
  EXPECT_GE(all, cases_min);
  EXPECT_GE(honest * 10, all * 4);
  EXPECT_LE(honest * 10, all * 6);
  for (const auto& [name, count] : classes) EXPECT_GE(count, class_cases_min) << name;
}

TEST(CompletionCorpus, NearlyAllCheatsAreBlocked) {
  const Scores scores = scores_of(corpus());
  EXPECT_GE(scores.overall.recall(), recall_min) << scores.wrong;
}

TEST(CompletionCorpus, NoClassOfCheatsGetsThrough) {
  const Scores scores = scores_of(corpus());
  for (const auto& [name, score] : scores.classes) EXPECT_GE(score.recall(), class_recall_min) << name << scores.wrong;
}

TEST(CompletionCorpus, HonestWorkIsHardlyEverBlocked) {
  const Scores scores = scores_of(corpus());
  EXPECT_LE(scores.overall.false_blocks(), false_blocks_max) << scores.wrong;
}

TEST(CompletionCorpus, AVagueTextCompletesATaskUnlessThePolicyRefusesTexts) {
  int vague = 0;
  for (CompletionCase one : corpus()) {
    if (one.kind != vague_kind) continue;
    ++vague;
    EXPECT_TRUE(judge_case(one).can_complete) << one.name;
    one.policy.text = evidence::completion::TextRule::refuse;
    EXPECT_FALSE(judge_case(one).can_complete) << one.name;
    one.policy.text = evidence::completion::TextRule::weak;
    one.policy.strict = true;
    EXPECT_FALSE(judge_case(one).can_complete) << one.name;
  }
  EXPECT_GE(vague, 5);
}

// The checks were tuned on the other half.
TEST(CompletionCorpus, TheHeldOutHalfFaresNearlyAsWell) {
  std::vector<CompletionCase> held_out;
  for (const CompletionCase& one : corpus()) {
    if (one.half == "held_out") held_out.push_back(one);
  }
  const Scores scores = scores_of(held_out);
  EXPECT_GE(scores.overall.recall(), held_out_recall_min);
  EXPECT_LE(scores.overall.false_blocks(), held_out_false_blocks_max);
}

// Uses the logs if they are available: CI fails without them (MUNIMENT_SHARED).
TEST(CompletionCorpus, LogsOfRealTestSuitesAreJudgedAsTheyEnded) {
  const char* shared = std::getenv("MUNIMENT_SHARED");
  const std::filesystem::path folder = shared == nullptr ? "../shared" : shared;
  const auto cases = test::read_swe_logs(folder / "data/traces/test-logs");
  if (std::getenv("CI") != nullptr) {
    EXPECT_FALSE(cases.empty()) << "no logs in " << folder;
  }
  const Scores scores = scores_of(cases);
  EXPECT_EQ(scores.overall.honest_blocked, 0) << scores.wrong;
  EXPECT_GE(scores.overall.recall(), recall_min) << scores.wrong;
}

}  // namespace
}  // namespace muniment
