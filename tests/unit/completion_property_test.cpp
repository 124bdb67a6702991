// Properties of every judgement, for any task, evidence and policy.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "completion_fixture.hpp"
#include "evidence/completion/changes/rust_tests.hpp"

namespace muniment::evidence::completion {
namespace {

const std::vector<std::string> texts{std::string(good_text),
                                     "",
                                     "TODO",
                                     "All tests passed",
                                     "asdf qwer zxcv",
                                     "12 passed in 0.31s",
                                     "Looked at src/auth/login.py:40 and measured 3 ms for 14 requests.",
                                     "auth <script>alert(1)</script>"};

Piece any_piece(int index) {
  Piece piece = *rc::gen::arbitrary<bool>() ? recorded_piece() : piece_of(*rc::gen::elementOf(texts));
  piece.evidence_id = "e" + std::to_string(index);
  piece.found = *rc::gen::weightedElement<bool>({{9, true}, {1, false}});
  piece.recorded_at = Time{noon.micros - *rc::gen::inRange<std::int64_t>(-2, 50) * hour};
  if (*rc::gen::inRange(0, 8) == 0) piece.spent_on = "t0";
  if (*rc::gen::inRange(0, 8) == 0) piece.damage = "hash mismatch";
  if (*rc::gen::arbitrary<bool>()) piece.actor = "tester";
  if (piece.command && *rc::gen::inRange(0, 4) == 0) piece.command->exit_code = 1;
  return piece;
}

std::vector<Piece> any_pieces() {
  std::vector<Piece> pieces;
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) pieces.push_back(any_piece(i));
  return pieces;
}

Task any_task() {
  Task task = task_of(*rc::gen::elementOf(
      std::vector<std::string>{"Implement authentication module", "Run the tests", "Fix payment retries", ""}));
  task.requires_evidence = *rc::gen::weightedElement<bool>({{4, true}, {1, false}});
  task.files_changed = *rc::gen::weightedElement<bool>({{1, true}, {6, false}});
  return task;
}

Policy any_policy() {
  Policy policy;
  policy.strict = *rc::gen::arbitrary<bool>();
  policy.other_actor = *rc::gen::arbitrary<bool>();
  policy.at_least = std::chrono::seconds(*rc::gen::inRange(0, 10'000));
  policy.fresh_for = std::chrono::seconds(*rc::gen::inRange(1, 200'000));
  if (*rc::gen::arbitrary<bool>()) policy.allowed = {"mismatch", "markup", "generic"};
  return policy;
}

std::string text_of(const Judgement& judgement) {
  std::string text = judgement.reason + std::string(name_of(judgement.verdict));
  for (const Finding& finding : judgement.findings)
    text += finding.evidence_id + std::string(finding.code) + finding.text + (finding.blocks ? "!" : "~");
  for (const PieceStatus& status : judgement.evidence_status)
    text += status.evidence_id + status.reason + (status.valid ? "v" : "-");
  return text;
}

TEST(CompletionProperty, TheSameInputHasTheSameJudgement) {
  EXPECT_TRUE(rc::check([] {
    const Task task = any_task();
    const auto pieces = any_pieces();
    const Policy policy = any_policy();
    RC_ASSERT(text_of(judge(task, pieces, policy, noon)) == text_of(judge(task, pieces, policy, noon)));
  }));
}

TEST(CompletionProperty, ABlockingPieceNeverTurnsARefusalIntoACompletion) {
  EXPECT_TRUE(rc::check([] {
    const Task task = any_task();
    auto pieces = any_pieces();
    const Policy policy = any_policy();
    Piece bad = piece_of("TODO");
    bad.evidence_id = "bad";
    pieces.insert(pieces.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(pieces.size()) + 1),
                  bad);
    RC_ASSERT(!judge(task, pieces, policy, noon).can_complete);
  }));
}

TEST(CompletionProperty, ATightenedPolicyNeverAdmitsMore) {
  EXPECT_TRUE(rc::check([] {
    const Task task = any_task();
    const auto pieces = any_pieces();
    const Policy policy = any_policy();
    Policy tight = policy;
    if (*rc::gen::arbitrary<bool>()) tight.strict = true;
    if (*rc::gen::arbitrary<bool>()) tight.other_actor = true;
    if (*rc::gen::arbitrary<bool>()) tight.allowed.clear();
    if (*rc::gen::arbitrary<bool>()) tight.required_type = "code_review";
    tight.at_least += std::chrono::seconds(*rc::gen::inRange(0, 10'000));
    tight.fresh_for = std::chrono::seconds(*rc::gen::inRange<std::int64_t>(1, policy.fresh_for.count() + 1));
    RC_ASSERT(!judge(task, pieces, tight, noon).can_complete || judge(task, pieces, policy, noon).can_complete);
  }));
}

TEST(CompletionProperty, TheVerdictIsPassExactlyWhereTheTaskCanComplete) {
  EXPECT_TRUE(rc::check([] {
    const Judgement judgement = judge(any_task(), any_pieces(), any_policy(), noon);
    RC_ASSERT(judgement.can_complete == (judgement.verdict == Verdict::pass));
    RC_ASSERT(!judgement.reason.empty());
  }));
}

TEST(CompletionProperty, EveryPieceHasOneStatusAndAnInvalidOneAReason) {
  EXPECT_TRUE(rc::check([] {
    const auto pieces = any_pieces();
    const Judgement judgement = judge(any_task(), pieces, any_policy(), noon);
    RC_ASSERT(judgement.evidence_status.size() == pieces.size());
    for (const PieceStatus& status : judgement.evidence_status) {
      RC_ASSERT(status.valid == status.code.empty());
      RC_ASSERT(!status.strong || status.valid);
    }
  }));
}

TEST(CompletionProperty, TimeOnlyMakesEvidenceOlder) {
  EXPECT_TRUE(rc::check([] {
    const auto pieces = any_pieces();
    const Policy policy = any_policy();
    Task task = any_task();
    task.opened_at.reset();
    const bool in_past =
        std::all_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.recorded_at <= noon; });
    RC_PRE(in_past);
    const Time later{noon.micros + *rc::gen::inRange<std::int64_t>(0, 100) * hour};
    RC_ASSERT(!judge(task, pieces, policy, later).can_complete || judge(task, pieces, policy, noon).can_complete);
  }));
}

TEST(CompletionProperty, AnyBytesAreJudgedWithoutACrash) {
  EXPECT_TRUE(rc::check([](const std::string& text, const std::string& content, const std::string& task) {
    Piece piece = piece_of(text);
    piece.content = content;
    judge(task_of(task), std::span(&piece, 1), Policy{}, noon);
  }));
}

TEST(CompletionProperty, AnyMixOfSignsIsJudgedWithoutACrash) {
  EXPECT_TRUE(rc::check([] {
    const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::vector<std::string>{
        "<",    "script", "'", ";",         "--",      "${",     "jndi:",   "../",       "etc/",         "$(",
        "`",    "\x1b",   "[", "\n",        " ",       "or 1=1", "ignore ", "previous ", "instructions", "\xE2\x80",
        "\x8B", "TODO",   ":", "12 passed", "{\"a\":", "}"}));
    std::string text;
    for (const std::string& part : parts) text += part;
    const Piece piece = piece_of(text);
    judge(authentication(), std::span(&piece, 1), Policy{}, noon);
  }));
}

TEST(CompletionProperty, WhiteSpaceAroundATextDoesNotMakeItBetter) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = *rc::gen::elementOf(texts);
    const std::string padded = std::string(*rc::gen::inRange<std::size_t>(0, 2'000), ' ') + text +
                               std::string(*rc::gen::inRange<std::size_t>(0, 2'000), '\n');
    RC_ASSERT(judged(piece_of(padded)).can_complete == judged(piece_of(text)).can_complete);
  }));
}

void every_line_of_rust_has_a_kind() {
  const std::vector<std::string> pieces{"#[cfg(test)]", "#[",    "#![",      " {",  "}",  ";",  "\"", "'",
                                        "'a",           "'\\",   "r#\"",     "\"#", "/*", "*/", "//", "/// ```",
                                        "\n",           "mod a", "\xC3\xA9", "]"};
  std::string text;
  const int count = *rc::gen::inRange(0, 30);
  for (int i = 0; i < count; ++i) text += *rc::gen::elementOf(pieces);
  RC_ASSERT(rust_lines(text).size() == static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1);
  RC_ASSERT(!changes_rust_tests("@@ -1 +1 @@\n", text, text));
}

TEST(CompletionProperty, EveryLineOfRustHasAKind) { EXPECT_TRUE(rc::check(every_line_of_rust_has_a_kind)); }

}  // namespace
}  // namespace muniment::evidence::completion
