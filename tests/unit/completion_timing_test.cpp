#include <gtest/gtest.h>

#include "completion_fixture.hpp"

namespace muniment::evidence::completion {
namespace {

Piece aged(std::int64_t micros) {
  Piece piece = good_piece();
  piece.recorded_at = Time{noon.micros - micros};
  return piece;
}

Task unopened() {
  Task task = authentication();
  task.opened_at.reset();
  return task;
}

TEST(Freshness, EvidenceOfJustUnderADayIsFreshAndOfADayIsStale) {
  EXPECT_EQ(blocked_by(judged(unopened(), {aged(day - 1)})), "");
  const Judgement judgement = judged(unopened(), {aged(day)});
  EXPECT_EQ(blocked_by(judgement), "stale");
  EXPECT_NE(judgement.reason.find("stale"), std::string::npos);
}

TEST(Freshness, ThePolicySetsTheLimit) {
  Policy policy;
  policy.fresh_for = std::chrono::seconds(60);
  EXPECT_EQ(blocked_by(judged(unopened(), {aged(60 * second - 1)}, policy)), "");
  EXPECT_EQ(blocked_by(judged(unopened(), {aged(60 * second)}, policy)), "stale");
}

TEST(Freshness, AStatedTimeMakesEvidenceOlder) {
  Piece piece = aged(hour);
  piece.stated_at = Time{noon.micros - 2 * day};
  EXPECT_EQ(blocked_by(judged(unopened(), {piece})), "stale");
}

TEST(Freshness, AStatedTimeNeverMakesEvidenceFresher) {
  Piece piece = aged(2 * day);
  piece.stated_at = noon;
  EXPECT_EQ(blocked_by(judged(unopened(), {piece})), "stale");
}

TEST(Freshness, AStatedTimeInTheFutureIsRefused) {
  Piece piece = aged(hour);
  piece.stated_at = Time{noon.micros + day};
  const Judgement judgement = judged(unopened(), {piece});
  EXPECT_EQ(blocked_by(judgement), "from_the_future");
  EXPECT_EQ(judgement.verdict, Verdict::fail);
}

TEST(Freshness, ASkewOfTwoMinutesBetweenClocksIsTolerated) {
  Piece piece = aged(hour);
  piece.stated_at = Time{noon.micros + 120 * second};
  EXPECT_EQ(blocked_by(judged(unopened(), {piece})), "");
  piece.stated_at = Time{noon.micros + 120 * second + 1};
  EXPECT_EQ(blocked_by(judged(unopened(), {piece})), "from_the_future");
}

TEST(Freshness, AClockThatWasSetBackDoesNotMakeEvidenceFresh) {
  const Judgement judgement = judged(unopened(), {aged(-1)});
  EXPECT_EQ(blocked_by(judgement), "clock_set_back");
  EXPECT_EQ(judgement.verdict, Verdict::inconclusive);
}

TEST(Freshness, ACommandThatEndedADayAgoIsStaleHoweverLateItIsRecorded) {
  Piece piece = recorded_piece();
  piece.command->ended_at = Time{noon.micros - day};
  piece.command->started_at = Time{noon.micros - day - second};
  EXPECT_EQ(blocked_by(judged(unopened(), {piece})), "stale");
}

TEST(Timing, ATaskDoneFasterThanItsTypeAllowsIsRefused) {
  Policy policy;
  policy.at_least = std::chrono::seconds(7'200);
  EXPECT_EQ(blocked_by(judged(authentication(), {good_piece()}, policy)), "");
  policy.at_least = std::chrono::seconds(7'201);
  const Judgement judgement = judged(authentication(), {good_piece()}, policy);
  EXPECT_EQ(blocked_by(judgement), "too_fast");
  EXPECT_EQ(judgement.findings[0].violation, "too_fast");
}

TEST(Timing, EvidenceThatCompletedAnotherTaskIsADuplicate) {
  Piece piece = good_piece();
  piece.spent_on = "t0";
  const Judgement judgement = judged(piece);
  EXPECT_EQ(blocked_by(judgement), "recycled");
  EXPECT_NE(judgement.reason.find("duplicate"), std::string::npos);
}

TEST(Timing, EvidenceThatCompletedTheSameTaskIsNoDuplicate) {
  Piece piece = good_piece();
  piece.spent_on = "t1";
  EXPECT_EQ(blocked_by(judged(piece)), "");
}

TEST(Timing, ACopyOfEarlierEvidenceIsADuplicate) {
  Piece piece = good_piece();
  piece.copied_from = "e0";
  EXPECT_EQ(blocked_by(judged(piece)), "copied");
}

TEST(Timing, ACopyWithNewNumbersIsRefused) {
  Piece piece = good_piece();
  piece.resembles = "e0";
  const Judgement judgement = judged(piece);
  EXPECT_EQ(blocked_by(judgement), "resembles");
  EXPECT_EQ(judgement.verdict, Verdict::fail);
}

TEST(Timing, EvidenceFromLongBeforeTheTaskIsReplayed) {
  Task task = authentication();
  task.opened_at = noon;
  Piece piece = aged(1'800 * second - 1);
  piece.recorded_before_task = true;
  EXPECT_EQ(blocked_by(judged(task, {piece})), "");
  piece.recorded_at = Time{noon.micros - 1'800 * second};
  EXPECT_TRUE(has_finding(judged(task, {piece}), "replayed"));
}

TEST(Timing, ACommandThatEndedLongBeforeTheTaskIsReplayedHoweverLateItIsRecorded) {
  Task task = authentication();
  Piece piece = recorded_piece();
  piece.command->ended_at = Time{task.opened_at->micros - 1'800 * second + 1};
  EXPECT_EQ(blocked_by(judged(task, {piece})), "");
  piece.command->ended_at = Time{task.opened_at->micros - 1'800 * second};
  const Judgement judgement = judged(task, {piece});
  EXPECT_EQ(blocked_by(judgement), "replayed");
  EXPECT_NE(judgement.reason.find("command of the evidence ended 30 min"), std::string::npos) << judgement.reason;
}

TEST(Timing, ACommandThatEndedAfterTheRecordingDoesNotMakeItNewer) {
  Task task = authentication();
  Piece piece = recorded_piece();
  piece.recorded_at = Time{task.opened_at->micros - 1'800 * second};
  EXPECT_EQ(blocked_by(judged(task, {piece})), "replayed");
  piece.command->ended_at = Time{};  // unknown
  EXPECT_EQ(blocked_by(judged(task, {piece})), "replayed");
}

TEST(Timing, APolicyCanDemandAnotherActorWhateverTheValidatorIdSays) {
  Policy policy;
  policy.other_actor = true;
  Piece piece = good_piece();
  piece.validator_id = "senior-reviewer";
  EXPECT_EQ(blocked_by(judged(authentication(), {piece}, policy)), "same_actor");
  piece.actor = "tester";
  EXPECT_EQ(blocked_by(judged(authentication(), {piece}, policy)), "");
}

TEST(Timing, AnUnknownActorIsNotAnotherActor) {
  Policy policy;
  policy.other_actor = true;
  Piece piece = good_piece();
  piece.actor.clear();
  EXPECT_EQ(blocked_by(judged(authentication(), {piece}, policy)), "same_actor");
}

TEST(Timing, AValidatorIdThatNamesAnotherActorIsForged) {
  Piece piece = good_piece();
  piece.validator_id = "tester";
  piece.names_other_actor = true;
  EXPECT_EQ(blocked_by(judged(piece)), "forged_identity");
}

TEST(Timing, ContentThatPosesAsARecordedCommandIsForged) {
  EXPECT_EQ(blocked_by(judged(
                task_of("Get code reviewed"),
                {piece_of_json(R"({"approved":true,"nonce":"af12","reviewer":"human","tree_digest":"sha256:00"})")})),
            "forged_record");
}

TEST(Shape, ACopyWithNewNumbersHasTheShapeOfItsOriginal) {
  const std::string first =
      shape_of("Reviewed 14 files of the auth module, found 3 issues in session handling and 2 in login.");
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first,
            shape_of("Reviewed 22 files of the auth module, found 7 issues in session handling and 1 in login."));
  EXPECT_NE(first,
            shape_of("Reviewed 14 files of the billing module, found 3 issues in session handling and 2 in login."));
}

TEST(Shape, AShortTextAndARunOfTestsHaveNone) {
  EXPECT_TRUE(shape_of("12 passed in 0.31s").empty());
  EXPECT_TRUE(shape_of(good_text).empty());
}

TEST(Timing, AnImportedCommandIsNoForgeryAndCompletesNothing) {
  Piece piece = piece_of_json(
      R"({"text":"tests/test_auth.py ..\n2 passed in 0.31s","command":{"command_id":"c","tree_after":"git:none v2 sha256:aa"}})",
      "test_output");
  EXPECT_EQ(blocked_by(judged(piece)), "forged_record");
  EXPECT_EQ(judged(piece).verdict, Verdict::fail);
  piece.imported = true;
  const Judgement judgement = judged(piece);
  EXPECT_EQ(blocked_by(judgement), "imported_command");
  EXPECT_EQ(judgement.verdict, Verdict::inconclusive);
  EXPECT_NE(judgement.reason.find("was not recorded here"), std::string::npos) << judgement.reason;
  EXPECT_FALSE(Policies::parse("[task.default]\nallow = [\"imported_command\"]\n").ok());
}

}  // namespace
}  // namespace muniment::evidence::completion
