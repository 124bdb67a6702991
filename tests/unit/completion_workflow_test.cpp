// Tests of blind workflow comparisons as evidence: strong if the daemon found the outputs equal, whatever the tester's
// program is, and subject to the isolation that the policy requires.
#include <gtest/gtest.h>

#include "completion_fixture.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr const char* digest = "1111111111111111111111111111111111111111111111111111111111111111";
constexpr const char* other = "2222222222222222222222222222222222222222222222222222222222222222";

Piece comparison(std::int64_t equal, std::int64_t total) {
  Piece piece = piece_of("outputs compared", "validation");
  Command command;
  command.observed = true;
  command.argv = {"/srv/tester.sh"};
  command.exit_code = 0;
  command.started_at = Time{noon.micros - hour - second};
  command.ended_at = Time{noon.micros - hour};
  command.isolation = command.coder_isolation = "full";
  command.workflow = digest;
  reports::Report report;
  report.format = reports::golden_format;
  report.counts = {total, equal, total - equal, 0};
  report.listed = report.complete = true;
  if (equal < total) report.failures = {"greeting.txt"};
  command.report = report;
  piece.command = command;
  return piece;
}

Policy strict() {
  Policy policy;
  policy.strict = true;
  return policy;
}

Task pinned(const char* content = "Implement authentication module") {
  Task task = task_of(content);
  task.workflow = digest;
  return task;
}

bool has_code(const Judgement& judgement, std::string_view code, bool blocks) {
  return std::any_of(judgement.findings.begin(), judgement.findings.end(),
                     [&](const Finding& finding) { return finding.code == code && finding.blocks == blocks; });
}

TEST(WorkflowEvidence, EqualOutputsAreStrongForATaskAboutTestsToo) {
  for (const char* content : {"Implement authentication module", "Make the authentication tests pass"}) {
    const Judgement judgement = judged(pinned(content), {comparison(2, 2)}, strict());
    EXPECT_TRUE(judgement.can_complete) << judgement.reason;
    EXPECT_TRUE(judgement.evidence_status.at(0).strong);
  }
}

TEST(WorkflowEvidence, OneDifferingOutputRefuses) {
  const Judgement judgement = judged(authentication(), {comparison(1, 2)});
  EXPECT_FALSE(judgement.can_complete);
  EXPECT_EQ(
      judgement.reason,
      "1 of 2 outputs differ from their golden files: greeting.txt. Correct the program and run the workflow again.");
}

TEST(WorkflowEvidence, ATesterThatFailsRefusesEqualOutputs) {
  Piece piece = comparison(2, 2);
  piece.command->exit_code = 1;
  EXPECT_FALSE(judged(piece).can_complete);
}

TEST(WorkflowEvidence, AStepBeforeTheComparisonCompletesNothing) {
  Piece step = recorded_piece();
  step.command->workflow_part = true;
  step.evidence_id = "01234567-0000-8000-8000-0000000000aa";
  for (const Policy& policy : {Policy(), strict()}) {
    const Judgement judgement = judged(authentication(), {step}, policy);
    EXPECT_FALSE(judgement.can_complete);
    EXPECT_NE(judgement.reason.find("whose result is the evidence of type \"validation\""), std::string::npos);
    EXPECT_FALSE(judged(pinned(), {step, comparison(1, 2)}, policy).can_complete);
    const Judgement whole = judged(pinned(), {step, comparison(2, 2)}, policy);
    EXPECT_TRUE(whole.can_complete) << whole.reason;
  }
}

TEST(WorkflowEvidence, LessIsolationThanThePolicyDemandsRefuses) {
  Policy policy;
  policy.isolation = "full";
  EXPECT_TRUE(policy.demands_evidence());
  EXPECT_TRUE(judged(authentication(), {comparison(1, 1)}, policy).can_complete);
  Piece weaker = comparison(1, 1);
  for (const char* reached : {"partial", "none", ""}) {
    weaker.command->coder_isolation = reached;
    EXPECT_FALSE(judged(authentication(), {weaker}, policy).can_complete) << reached;
  }
  policy.isolation = "partial";
  weaker.command->coder_isolation = "partial";
  EXPECT_TRUE(judged(authentication(), {weaker}, policy).can_complete);
}

TEST(WorkflowEvidence, APolicyThatDemandsIsolationAcceptsNoOtherEvidence) {
  Policy policy;
  policy.isolation = "partial";
  EXPECT_FALSE(judged(authentication(), {recorded_piece()}, policy).can_complete);
  EXPECT_FALSE(judged(authentication(), {good_piece()}, policy).can_complete);
}

TEST(WorkflowEvidence, TheStepsCompleteATaskTogetherWithTheComparisonUnderAnIsolation) {
  Policy policy;
  policy.isolation = "full";
  Piece step = recorded_piece();
  step.command->workflow_part = true;
  step.evidence_id = "01234567-0000-8000-8000-0000000000aa";
  const Judgement judgement = judged(authentication(), {step, comparison(1, 1)}, policy);
  EXPECT_TRUE(judgement.can_complete) << judgement.reason;
  EXPECT_FALSE(judged(authentication(), {step}, policy).can_complete);
  Piece weaker = comparison(1, 1);
  weaker.command->coder_isolation = "none";
  EXPECT_FALSE(judged(authentication(), {step, weaker}, policy).can_complete);
  Piece text = good_piece();
  text.evidence_id = "01234567-0000-8000-8000-0000000000ab";
  EXPECT_FALSE(judged(authentication(), {text, comparison(1, 1)}, policy).can_complete);
}

TEST(WorkflowEvidence, AWorkflowThatNobodyNamedIsWeak) {
  const Judgement weak = judged(authentication(), {comparison(1, 1)});
  EXPECT_TRUE(weak.can_complete) << weak.reason;
  EXPECT_FALSE(weak.evidence_status.at(0).strong);
  EXPECT_TRUE(has_code(weak, "unpinned_workflow", false));
  const Judgement refused = judged(authentication(), {comparison(1, 1)}, strict());
  EXPECT_FALSE(refused.can_complete);
  EXPECT_TRUE(has_code(refused, "unpinned_workflow", true));
  EXPECT_NE(refused.reason.find("muniment task open --workflow"), std::string::npos) << refused.reason;
  Policy listed = strict();
  listed.workflows = {other, digest};
  EXPECT_TRUE(judged(authentication(), {comparison(1, 1)}, listed).can_complete);
  listed.workflows = {other};
  Piece step = recorded_piece();
  step.command->workflow_part = true;
  step.evidence_id = "01234567-0000-8000-8000-0000000000aa";
  EXPECT_FALSE(judged(authentication(), {step, comparison(1, 1)}, listed).can_complete);
  EXPECT_FALSE(judged(authentication(), {comparison(1, 1)}, listed).can_complete);
  Piece unknown = comparison(1, 1);
  unknown.command->workflow.clear();
  EXPECT_FALSE(judged(authentication(), {unknown}, listed).can_complete);
}

TEST(WorkflowEvidence, APinnedTaskAcceptsOnlyItsWorkflow) {
  Task task = pinned();
  EXPECT_TRUE(judged(task, {comparison(1, 1)}, strict()).can_complete);
  task.workflow = other;
  for (const Policy& policy : {Policy(), strict()}) {
    const Judgement judgement = judged(task, {comparison(1, 1)}, policy);
    EXPECT_FALSE(judgement.can_complete);
    EXPECT_TRUE(has_code(judgement, "other_workflow", true));
    EXPECT_TRUE(has_code(judged(task, {good_piece()}, policy), "other_workflow", true));
    EXPECT_TRUE(has_code(judged(task, {recorded_piece()}, policy), "other_workflow", true));
  }
}

TEST(WorkflowEvidence, AWorkflowThatAnyProgramPassesRefuses) {
  Piece empty = comparison(1, 1), unread = comparison(1, 1), told = comparison(1, 1);
  empty.command->golden_empty = true;
  unread.command->unread = true;
  told.command->golden_told = true;
  EXPECT_TRUE(has_code(judged(pinned(), {empty}), "empty_golden", true));
  EXPECT_TRUE(has_code(judged(pinned(), {unread}), "unread_implementation", true));
  EXPECT_TRUE(judged(pinned(), {told}).can_complete);
  EXPECT_TRUE(has_code(judged(pinned(), {told}, strict()), "told_golden", true));
}

TEST(WorkflowEvidence, ThePolicyFileListsWorkflows) {
  const std::string text =
      "[task.default]\nworkflows = [\"" + std::string(digest) + "\"]\n[task.release]\nstrict = true\n";
  EXPECT_EQ(Policies::parse(text)->of_type("release").workflows, std::vector<std::string>{digest});
  EXPECT_FALSE(Policies::parse(text)->of_type("any").demands_evidence());
  EXPECT_FALSE(Policies::parse("[task.default]\nworkflows = [\"workflow.toml\"]"));
  EXPECT_FALSE(Policies::parse("[task.default]\nallow = [\"other_workflow\"]"));
}

TEST(WorkflowEvidence, ThePolicyFileNamesALevel) {
  EXPECT_EQ(Policies::parse("[task.release]\nisolation = \"full\"")->of_type("release").isolation, "full");
  EXPECT_EQ(Policies::parse("")->of_type("release").isolation, "");
  for (const char* level : {"none", "total", ""})
    EXPECT_FALSE(Policies::parse("[task.release]\nisolation = \"" + std::string(level) + "\"")) << level;
}

}  // namespace
}  // namespace muniment::evidence::completion
