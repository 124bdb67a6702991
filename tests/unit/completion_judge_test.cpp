#include <gtest/gtest.h>

#include <set>

#include "completion_fixture.hpp"
#include "evidence/completion/checks.hpp"

namespace muniment::evidence::completion {
namespace {

TEST(Completion, EvidenceThatPassesEveryCheckCompletesTheTask) {
  const Judgement judgement = judged(good_piece());
  EXPECT_TRUE(judgement.can_complete) << judgement.reason;
  EXPECT_EQ(judgement.verdict, Verdict::pass);
  ASSERT_EQ(judgement.evidence_status.size(), 1U);
  EXPECT_TRUE(judgement.evidence_status[0].exists);
  EXPECT_TRUE(judgement.evidence_status[0].valid);
  EXPECT_FALSE(judgement.evidence_status[0].strong);
}

TEST(Completion, ATaskWithoutEvidenceIsRefused) {
  const Judgement judgement = judged(authentication(), {});
  EXPECT_FALSE(judgement.can_complete);
  EXPECT_NE(judgement.reason.find("No evidence provided"), std::string::npos);
  EXPECT_EQ(judgement.verdict, Verdict::fail);
}

TEST(Completion, ATaskThatRequiresNoEvidenceCompletesWithoutAnyEvenUnderTheStrictPolicy) {
  Task task = authentication();
  task.requires_evidence = false;
  EXPECT_TRUE(judged(task, {}).can_complete);
  EXPECT_TRUE(judged(task, {}, strict_policy()).can_complete);
}

TEST(Completion, UnknownEvidenceIsRefused) {
  Piece piece;
  piece.evidence_id = "gone";
  const Judgement judgement = judged(piece);
  EXPECT_EQ(blocked_by(judgement), "unknown");
  EXPECT_FALSE(judgement.evidence_status[0].exists);
  EXPECT_FALSE(judgement.evidence_status[0].valid);
}

TEST(Completion, TheSameEvidenceTwiceIsADuplicateAndHasOneStatus) {
  const Judgement judgement = judged(authentication(), {good_piece(), good_piece()});
  EXPECT_EQ(blocked_by(judgement), "given_twice");
  EXPECT_NE(judgement.reason.find("duplicate"), std::string::npos);
  EXPECT_EQ(judgement.evidence_status.size(), 1U);
}

TEST(Completion, OneBadPieceAmongGoodOnesBlocks) {
  Piece second_piece = piece_of("TODO");
  second_piece.evidence_id = "e2";
  const Judgement judgement = judged(authentication(), {good_piece(), second_piece});
  EXPECT_FALSE(judgement.can_complete);
  EXPECT_TRUE(judgement.evidence_status[0].valid);
  EXPECT_EQ(judgement.evidence_status[1].code, "placeholder");
}

TEST(Completion, DamagedEvidenceIsTamperedWhateverElseItIs) {
  Piece piece = good_piece();
  piece.damage = "hash mismatch";
  Piece empty = piece_of("");
  empty.evidence_id = "e2";
  const Judgement judgement = judged(authentication(), {empty, piece});
  EXPECT_EQ(judgement.verdict, Verdict::tampered);
  EXPECT_TRUE(has_finding(judgement, "damaged"));
}

TEST(Completion, ADamagedTextIsNotRead) {
  Piece piece = piece_of("TODO <script>");
  piece.damage = "hash mismatch";
  const Judgement judgement = judged(piece);
  EXPECT_EQ(judgement.findings.size(), 1U);
}

TEST(Completion, ErasedEvidenceIsInconclusive) {
  Piece piece = piece_of("");
  piece.erased = true;
  const Judgement judgement = judged(piece);
  EXPECT_EQ(judgement.verdict, Verdict::inconclusive);
  EXPECT_EQ(blocked_by(judgement), "erased");
}

TEST(Completion, AnotherTypeThanTheTaskRequiresIsAMismatch) {
  Task task = authentication();
  task.required_type = "code_review";
  const Judgement judgement = judged(task, {good_piece()});
  EXPECT_EQ(blocked_by(judgement), "wrong_type");
  EXPECT_NE(judgement.reason.find("Evidence mismatch"), std::string::npos);
}

TEST(Completion, AnotherTypeThanThePolicyRequiresIsAMismatch) {
  Policy policy;
  policy.required_type = "deployment";
  EXPECT_EQ(blocked_by(judged(authentication(), {good_piece()}, policy)), "wrong_type");
}

TEST(Completion, ATaskCannotReplaceTheTypeThatThePolicyRequires) {
  Policy policy;
  policy.required_type = "deployment";
  Task task = authentication();
  task.required_type = "test_output";
  EXPECT_EQ(blocked_by(judged(task, {good_piece()}, policy)), "wrong_type");
}

TEST(Completion, TheStrictPolicyRefusesTheAgentsWord) {
  const Judgement judgement = judged(authentication(), {good_piece()}, strict_policy());
  EXPECT_FALSE(judgement.can_complete);
  EXPECT_EQ(judgement.verdict, Verdict::weak);
  EXPECT_EQ(blocked_by(judgement), "self_reported");
}

TEST(Completion, TheStrictPolicyAcceptsARecordedRun) {
  const Judgement judgement = judged(authentication(), {recorded_piece()}, strict_policy());
  EXPECT_TRUE(judgement.can_complete) << judgement.reason;
  EXPECT_TRUE(judgement.evidence_status[0].strong);
}

TEST(Completion, ACodeThatThePolicyAllowsIsNotedAndDoesNotBlock) {
  Policy policy;
  policy.allowed = {"mismatch"};
  const Judgement judgement = judged(task_of("Implement payment processing"), {good_piece()}, policy);
  EXPECT_TRUE(judgement.can_complete);
  EXPECT_TRUE(has_finding(judgement, "mismatch", false));
}

TEST(Completion, TheReasonIsThatOfTheFirstBlockingCheckInTheTablesOrder) {
  Piece piece = piece_of("TODO");
  piece.recorded_at = Time{noon.micros - 3 * day};
  const Judgement judgement = judged(piece);
  EXPECT_EQ(blocked_by(judgement), "placeholder");
  EXPECT_TRUE(has_finding(judgement, "stale"));
}

TEST(Completion, EveryCodeHasAUniqueNameAndOneOfTheTenChecks) {
  std::set<std::string_view> names, checks;
  for (const CodeRow& row : code_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    checks.insert(row.check);
  }
  EXPECT_EQ(checks.size(), 10U);
}

TEST(Completion, TamperingForgeryReplayRecyclingStalenessAndHasteAreViolations) {
  for (const Code code :
       {Code::damaged, Code::stale, Code::too_fast, Code::recycled, Code::copied, Code::replayed, Code::resembles,
        Code::forged_identity, Code::forged_record, Code::tree_changed, Code::edited_after}) {
    EXPECT_FALSE(row_of(code).violation.empty()) << row_of(code).name;
  }
  for (const Code code : {Code::placeholder, Code::from_the_future, Code::counts_disagree, Code::same_actor})
    EXPECT_TRUE(row_of(code).violation.empty()) << row_of(code).name;
}

TEST(Completion, EveryVerdictHasTheNameOfTheContract) {
  EXPECT_EQ(name_of(Verdict::pass), "pass");
  EXPECT_EQ(name_of(Verdict::weak), "weak");
  EXPECT_EQ(name_of(Verdict::fail), "fail");
  EXPECT_EQ(name_of(Verdict::tampered), "tampered");
  EXPECT_EQ(name_of(Verdict::inconclusive), "inconclusive");
}

TEST(Judge, ACommandThatIsNamedHasTheRunAndTheTaskWhereTheyAreKnown) {
  Task task = authentication();
  task.run_id = "run 1";
  EXPECT_NE(judged(task, {}).reason.find("`muniment exec --run 'run 1' --evidence TYPE --task t1 -- COMMAND`"),
            std::string::npos)
      << judged(task, {}).reason;
  task.run_id = task.task_id = "";
  EXPECT_NE(judged(task, {}).reason.find("--run RUN --evidence TYPE --task ID"), std::string::npos);
}

}  // namespace
}  // namespace muniment::evidence::completion
