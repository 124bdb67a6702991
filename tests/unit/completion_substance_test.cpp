#include <gtest/gtest.h>

#include <array>

#include "completion_fixture.hpp"
#include "evidence/completion/text/blanks.hpp"
#include "evidence/completion/text/facts.hpp"
#include "evidence/completion/text/likeness.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

bool is_mash_text(std::string_view text) {
  Likeness likeness;
  each_word(text, [&](std::string_view word) { add_word(likeness, word); });
  return is_mash(likeness);
}

TEST(Substance, AnEmptyTextIsEmptyEvidenceContent) {
  const Judgement judgement = judged(piece_of(""));
  EXPECT_EQ(blocked_by(judgement), "empty");
  EXPECT_NE(judgement.reason.find("Empty evidence content"), std::string::npos);
}

TEST(Substance, WhiteSpaceAloneIsEmpty) { EXPECT_EQ(code_of_text(" \t\r\n \v\f "), "empty"); }

TEST(Substance, APlaceholderAloneIsFound) {
  for (const char* text : {"TODO", "tbd", "FIXME", "XXX", "[PENDING]", "<<REPLACE>>", "___", "...", "???", "N/A", "nil",
                           "None", "-", "to be determined", "{{ test_output }}"}) {
    const Judgement judgement = judged(piece_of(text));
    EXPECT_EQ(blocked_by(judgement), "placeholder") << text;
    EXPECT_NE(judgement.reason.find("Weak or placeholder evidence"), std::string::npos);
  }
}

TEST(Substance, APlaceholderInsideALongerLineIsFound) {
  EXPECT_EQ(code_of_text("Test results: TBD"), "placeholder");
  EXPECT_EQ(code_of_text("Authentication test output: TODO: paste the log here"), "placeholder");
  EXPECT_EQ(code_of_text("Auth coverage: ___% of 14 files"), "placeholder");
}

TEST(Substance, ALetterInPlaceOfACountIsAPlaceholder) {
  EXPECT_EQ(code_of_text("auth: XX tests passed, 0 failed"), "placeholder");
  EXPECT_EQ(code_of_text("auth run: N passed, M failed"), "placeholder");
}

TEST(Substance, ATemplateThatAsksToBeFilledIsAPlaceholder) {
  EXPECT_EQ(code_of_text("auth: <insert test output>"), "placeholder");
  EXPECT_EQ(code_of_text("auth [paste your log here]"), "placeholder");
}

TEST(Substance, AnOpenResultOutweighsTheFactsBesideIt) {
  EXPECT_EQ(code_of_text("Suite: tests/auth\nDate: 2026-11-26\nHost: ci-4.example.org\nTest results: TBD"),
            "placeholder");
}

TEST(Substance, ATodoInALongRealReportIsNoPlaceholder) {
  EXPECT_EQ(
      code_of_text(
          "Looked at src/auth/login.py, src/auth/session.py and tests/test_auth.py at commit 4f2a9c1d: the retry in "
          "login.py:40 is bounded to 5 attempts, the session lock in session.py:88 is released. One TODO in login.py:12 "
          "remains. Approved by Priya on 2026-11-25."),
      "");
}

TEST(Substance, NoneIsAnOrdinaryValueInAToolsHeader) {
  EXPECT_EQ(
      code_of_text(
          "cache:              no\nnumpy:              None\nsympy/auth/tests/test_auth.py[2]\ntest_login ok\ntest_logout "
          "ok     [OK]\n======= tests finished: 2 passed, in 7.98 seconds ======="),
      "");
}

TEST(Substance, AClaimWithoutAnObservationIsGeneric) {
  for (const char* text : {"done", "ok", "All tests passed", "Works fine", "LGTM", "Completed successfully",
                           "Authentication module implemented and tested. Everything works."}) {
    const Judgement judgement = judged(piece_of(text));
    EXPECT_FALSE(judgement.can_complete) << text;
    EXPECT_NE(judgement.reason.find("insufficient detail"), std::string::npos) << text << ": " << judgement.reason;
  }
}

TEST(Substance, ATerseTextWithAFactOrAWordOfItsOwnCompletesATask) {
  for (const auto& [task, text, type] : std::initializer_list<std::array<const char*, 3>>{
           {"Make the tests pass", "12 passed", "test_output"},
           {"Make the tests pass", "10 passed in 0.31s", "test_output"},
           {"Make the tests pass", "All tests passed: 10/10", "test_output"},
           {"Get the design approved", "Design approved by architect", "design_review"},
           {"Write a page about the installation", "Wrote the page docs/install.md about the installation", "document"},
           {"Write a page about the installation", "The installation page explains the proxy settings now",
            "document"}}) {
    const Judgement judgement = judged(task_of(task), {piece_of(text, type)});
    EXPECT_TRUE(judgement.can_complete) << text << ": " << judgement.reason;
    EXPECT_FALSE(judgement.evidence_status[0].strong) << text;
    EXPECT_FALSE(judged(task_of(task), {piece_of(text, type)}, strict_policy()).can_complete) << text;
  }
}

TEST(Substance, AnOpenItemAndASlotArePlaceholders) {
  EXPECT_EQ(code_of_text("- [ ] authentication tests run\n- [ ] login checked"), "placeholder");
  EXPECT_EQ(code_of_text("Authentication: {{ passed }} passed, {{ failed }} failed"), "placeholder");
  EXPECT_EQ(code_of_text("Authentication: %d passed, %d failed"), "placeholder");
}

TEST(Substance, LongPraiseIsAsGenericAsShortPraise) {
  EXPECT_EQ(
      code_of_text(
          "The work has been completed successfully and all requirements have been met. The code is clean, efficient and "
          "well tested. Everything functions as expected and the solution is robust."),
      "generic");
}

TEST(Substance, RepeatingTheTaskAddsNothing) {
  EXPECT_EQ(code_of_text("I have implemented the authentication module and verified that it works correctly."),
            "generic");
}

TEST(Substance, KeyboardMashIsFound) {
  for (const char* text : {"asdfasdf qwer zxcv", "asdkjhaskjdh aksjdhkajshd kajshdkjahsd", "qwertyuiop asdfghjkl",
                           "fjdksla; fjdksla; fjdksl", "authentication sdkfjh sdkjfhsdk sdkjfhskdjfh ksjdhf"}) {
    EXPECT_EQ(code_of_text(text), "keyboard_mash") << text;
  }
}

TEST(Substance, WordsOfOtherLanguagesAndAbbreviationsAreNoMash) {
  EXPECT_FALSE(is_mash_text("Die Anmeldung wurde mit falschem Kennwort abgelehnt und nach fuenf Versuchen gesperrt"));
  EXPECT_FALSE(is_mash_text("La connexion est refusee apres cinq essais et le compte reste bloque pendant une heure"));
  EXPECT_FALSE(is_mash_text("httpd argv mkdir kwargs pytest sympy nginx kubectl postgres ldflags virtualenv"));
  EXPECT_FALSE(is_mash_text("power were treed weather fewer pool"));
}

TEST(Substance, RandomLettersAreMash) { EXPECT_TRUE(is_mash_text("xkqjv zpwqrt bvnxz qqwkjh lkjhg")); }

TEST(Substance, RepetitionIsPadding) {
  EXPECT_EQ(
      code_of_text(
          "Authentication works with 14 files. Authentication works with 14 files. Authentication works with 14 files. "
          "Authentication works with 14 files. Authentication works with 14 files. Authentication works with 14 files. "
          "Authentication works with 14 files. Authentication works with 14 files."),
      "padded");
}

TEST(Substance, ACountThatRisesWithTheSameWordsIsPadding) {
  EXPECT_NE(
      code_of_text(
          "Test 1 passed. Test 2 passed. Test 3 passed. Test 4 passed. Test 5 passed. Test 6 passed. Test 7 passed. Test 8 "
          "passed. Test 9 passed."),
      "");
}

TEST(Substance, FillerLatinIsFound) {
  EXPECT_EQ(
      code_of_text("Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor 12 passed in 0.4s"),
      "filler");
}

TEST(Substance, AReviewInProseHasSubstanceByWhatItObserved) {
  EXPECT_EQ(
      blocked_by(judged(
          task_of("Review the token refresh design"),
          {piece_of(
              "Design review: walked through the token refresh flow with the platform group; agreed to keep rotation "
              "on the server and to drop the sliding window. Priya asked for a metric on failed refreshes.",
              "design_review")})),
      "");
}

TEST(Substance, AShortJsonIsJudgedByItsValues) {
  EXPECT_EQ(
      blocked_by(judged(task_of("Get code reviewed"), {piece_of_json(R"({"approved":true,"reviewer":"human"})")})), "");
  EXPECT_EQ(blocked_by(judged(task_of("Get code reviewed"), {piece_of_json(R"({"approved":null,"reviewer":"TBD"})")})),
            "placeholder");
  EXPECT_NE(blocked_by(judged(task_of("Get code reviewed"), {piece_of_json(R"({"status":"done"})")})), "");
  EXPECT_EQ(blocked_by(judged(task_of("Get code reviewed"), {piece_of_json("{}")})), "empty");
}

TEST(Substance, AReportOfARunnerHasSubstance) { EXPECT_EQ(code_of_text(std::string(good_text)), ""); }

TEST(Substance, ARecordedCommandThatPrintsNothingHasSubstance) {
  Piece piece = recorded_piece();
  piece.type = "lint";
  piece.text = "";
  piece.command->argv = {"mypy", "src/auth"};
  piece.command->report.reset();
  EXPECT_EQ(blocked_by(judged(piece)), "");
}

TEST(Blanks, AFieldSplitsAtItsFirstColon) {
  const Field field = field_of("- Test results: TBD");
  EXPECT_EQ(field.name, "Test results");
  EXPECT_EQ(field.value, "TBD");
  EXPECT_TRUE(field.promises_result);
  EXPECT_TRUE(field_of("https://example.org").name.empty());
}

TEST(Blanks, TheRulesThatARunnerPrintsInBracketsAreNoBlanks) {
  EXPECT_EQ(blanks_inside("[----------] 2 tests from Matrix"), 0U);
  EXPECT_EQ(blanks_inside("[==========] Running 2 tests from 1 test suite."), 0U);
  EXPECT_GT(blanks_inside("[___]"), 0U);
}

TEST(Blanks, AValueWithAFactIsFilled) {
  EXPECT_EQ(blank_kind("12 passed"), Blank::no);
  EXPECT_EQ(blank_kind("pending review of PR 12"), Blank::no);
  EXPECT_EQ(blank_kind("none"), Blank::soft);
  EXPECT_EQ(blank_kind("[PENDING]"), Blank::hard);
}

TEST(Facts, PathsIdentifiersTimesAndMeasuredNumbersAreFacts) {
  for (const char* token :
       {"src/auth.py", "test_login", "QuerySet", "a::b", "0.31s", "2026-11-26", "12:03:44", "--strict", "4f2a9c1d"}) {
    EXPECT_EQ(half_facts_of(token, ""), 2U) << token;
  }
  EXPECT_EQ(half_facts_of("12", "passed"), 2U);
  EXPECT_EQ(half_facts_of("40", "of"), 1U);
  EXPECT_EQ(half_facts_of("100%", ""), 1U);
  EXPECT_EQ(half_facts_of("0", "failed"), 1U);
  EXPECT_EQ(half_facts_of("and/or", ""), 0U);
  EXPECT_EQ(half_facts_of("hello", ""), 0U);
}

TEST(Words, IdentifiersSplitAtCaseAndUnderscore) {
  std::string words;
  each_word("test_HTTPServer parseJSONText don't", [&](std::string_view word) { (words += word) += ' '; });
  EXPECT_EQ(words, "test http server parse json text dont ");
}

TEST(Words, AWordLongerThanTheLimitIsSkippedAndTheNextIsRead) {
  std::size_t count = 0;
  each_word(std::string(word_bytes_max, 'a') + " " + std::string(word_bytes_max + 1, 'b') + " c",
            [&](std::string_view) { ++count; });
  EXPECT_EQ(count, 2U);
}

TEST(Words, FormsOfAWordHaveOneStem) {
  EXPECT_EQ(stem_of("processing"), stem_of("processed"));
  EXPECT_EQ(stem_of("authentication"), stem_of("authenticated"));
  EXPECT_EQ(stem_of("notifications"), stem_of("notification"));
  EXPECT_NE(stem_of("authorization"), stem_of("authentication"));
}

TEST(Substance, HeadingsWithoutTextAreNoEvidence) {
  EXPECT_NE(code_of_text("# Authentication\n\n## Context\n\n## Options\n\n## Decision\n\n## Risks\n"), "");
}

TEST(Substance, TheAlphabetIsPadding) {
  EXPECT_EQ(code_of_text("authentication a b c d e f g h i j k l m n o p q r s t 0 1 2 3 4 5 6"), "padded");
}

TEST(Substance, NumbersWithoutANounOrAUnitAreMash) {
  EXPECT_EQ(code_of_text("9283749 8237498 2374982 7349 82374 authentication 92837 49823 7498237"), "keyboard_mash");
}

TEST(Substance, ALogWhoseLinesHaveDataOfTheirOwnIsNotRepetitive) {
  std::string log;
  for (int i = 10; i < 60; ++i) {
    log += "2026-11-26T21:00:" + std::to_string(i) + "Z authentication: user " + std::to_string(40'000 + i * 7) +
           " migrated, " + std::to_string(i) + " rows, took 0." + std::to_string(i) + " s\n";
  }
  EXPECT_EQ(code_of_text(log), "");
}

TEST(Substance, ACleanLinterHasLittleToPrint) {
  const auto code = [](const char* text) { return blocked_by(judged(task_of("Lint"), {piece_of(text, "lint")})); };
  EXPECT_EQ(code("Success: no issues found in 1 source file"), "");
  EXPECT_EQ(code("gofmt -l queue: nothing listed"), "");
  EXPECT_EQ(code("No issues found."), "generic");
  EXPECT_EQ(code("All good."), "generic");
}

TEST(Substance, AReviewMaySayWhatTheWorkShouldBe) {
  EXPECT_EQ(
      blocked_by(judged(piece_of("Two remarks on the authentication, both fixed in 3c1e88d: the timeout should be "
                                 "monotonic, and `reset_token` was never called.",
                                 "code_review"))),
      "");
}

TEST(Substance, AUnitBehindANumberIsNoBlank) {
  EXPECT_EQ(code_of_text("Authentication table: 12 M rows migrated in 40 s, 3 indexes built."), "");
}

}  // namespace
}  // namespace muniment::evidence::completion
