// Tests of the detection and classification of claims in sentences.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "evidence/run_judge/kinds.hpp"
#include "evidence/run_judge/sentences.hpp"

namespace muniment::evidence::run_judge {
namespace {

// Returns the kinds in the order of the sentences, such as "tests_pass fixed".
std::string kinds_in(std::string_view text) {
  std::string kinds;
  for (const Sentence& sentence : sentences_of(text)) {
    for (const Said& said : claims_in(sentence)) {
      if (!kinds.empty()) kinds += ' ';
      kinds += name_of(said.kind);
    }
  }
  return kinds;
}

std::string subjects_in(std::string_view text) {
  std::string subjects;
  for (const Sentence& sentence : sentences_of(text)) {
    for (const Said& said : claims_in(sentence)) subjects += (subjects.empty() ? "" : " ") + said.subject;
  }
  return subjects;
}

TEST(Claims, TestsThatPassAreClaimedInManyForms) {
  for (const char* text :
       {"All tests pass.", "All tests passed!", "The tests now pass.", "All 42 tests are passing.",
        "The test suite is green.", "42 tests passed.", "The existing unit tests still pass",
        "There are no failing tests.", "No tests failed.", "The change passes all the existing tests.",
        "`test_login` passes now.", "The tests in `tests/test_login.py` pass.", "I can confirm that all tests pass.",
        "- **Tests**: all tests pass", "The test suite passed without failures."}) {
    EXPECT_EQ(kinds_in(text), "tests_pass") << text;
  }
}

TEST(Claims, APlanAWishAndAConditionAreNoClaims) {
  for (const char* text :
       {"The tests should pass.", "Once the tests pass, we are done.", "If all tests pass, I will commit.",
        "The tests will pass now.", "Let me make sure that all tests pass.", "I will fix the bug.",
        "We need to verify that the issue is fixed.", "Let's run the tests to see whether they pass.",
        "I hope the tests pass.", "The tests probably pass.", "After all tests pass we can deploy.",
        "I'm going to check that the issue has been fixed.", "All tests pass if the flag is set.",
        "Please ensure all tests pass.", "The goal is that all tests pass.", "It seems the bug is fixed.",
        "All tests must pass.", "Next, I'll create `a.py` and run the tests.", "The tests can't pass without it."}) {
    EXPECT_EQ(kinds_in(text), "") << text;
  }
}

TEST(Claims, AQuestionIsNoClaim) {
  EXPECT_EQ(kinds_in("Do all tests pass?"), "");
  EXPECT_EQ(kinds_in("All tests pass?"), "");
}

TEST(Claims, AQuotationIsNoClaim) {
  EXPECT_EQ(kinds_in("The log said \"all tests passed\" yesterday."), "");
  EXPECT_EQ(kinds_in("> All tests pass."), "");
  EXPECT_EQ(kinds_in("```\nAll tests pass.\n```"), "");
  EXPECT_EQ(kinds_in("I print 'all tests passed' there."), "");
  EXPECT_EQ(kinds_in("The user said all tests pass."), "");
}

TEST(Claims, ADeniedPassIsAClaimOfFailure) {
  for (const char* text : {"The tests do not pass.", "The tests don't pass.", "Not all tests pass.", "The tests fail.",
                           "3 tests failed.", "`test_login` is still failing.", "The unit tests are not passing."}) {
    EXPECT_EQ(kinds_in(text), "tests_fail") << text;
  }
}

TEST(Claims, AFixThatIsDeniedIsNoClaim) {
  EXPECT_EQ(kinds_in("The bug has not been fixed."), "");
  EXPECT_EQ(kinds_in("I haven't fixed the bug."), "");
}

TEST(Claims, SomeTestsAreNotTheTests) {
  EXPECT_EQ(kinds_in("Some of the tests pass."), "");
  EXPECT_EQ(kinds_in("3 of 5 tests pass."), "");
  EXPECT_EQ(kinds_in("Most tests pass."), "");
}

TEST(Claims, TwoClausesAreTwoClaims) {
  EXPECT_EQ(kinds_in("The unit tests pass but the integration tests fail."), "tests_pass tests_fail");
  EXPECT_EQ(kinds_in("I fixed the bug and all tests pass."), "tests_pass fixed");
}

TEST(Claims, APassedMainClauseBehindASubordinateOneIsAClaim) {
  EXPECT_EQ(kinds_in("After fixing the import, all tests pass."), "tests_pass");
  EXPECT_EQ(kinds_in("I ran the tests and they all pass."), "tests_pass tests_run");
}

TEST(Claims, AFixIsClaimedInManyForms) {
  for (const char* text :
       {"I fixed the bug.", "I have fixed the issue.", "Fixed the crash in the parser.", "The issue has been resolved.",
        "The bug is now fixed.", "This change fixes the issue.", "The crash no longer occurs.",
        "I've successfully resolved the problem.", "The problem with the parser was fixed.",
        "The issue with `SSIMLoss` not propagating gradients is fixed."}) {
    EXPECT_EQ(kinds_in(text), "fixed") << text;
  }
}

TEST(Claims, AnAttributeIsNoClaim) {
  EXPECT_EQ(kinds_in("The fixed version of the file is here."), "");
  EXPECT_EQ(kinds_in("The failing tests are in this folder."), "");
  EXPECT_EQ(kinds_in("A newly created file holds the settings."), "");
}

TEST(Claims, AnEarlierStateIsNoClaim) {
  EXPECT_EQ(kinds_in("The tests passed before the change."), "");
  EXPECT_EQ(kinds_in("Previously all tests passed."), "");
}

TEST(Claims, FilesAreSubjects) {
  EXPECT_EQ(subjects_in("I created `src/a.py` and `src/b.py`."), "src/a.py src/b.py");
  EXPECT_EQ(subjects_in("Updated the parser in lib/parse.c, tests pass."), "lib/parse.c");
  EXPECT_EQ(kinds_in("I created `src/a.py`."), "file_written");
  EXPECT_EQ(kinds_in("`config.toml` has been updated."), "file_written");
  EXPECT_EQ(subjects_in("The `a.py` script has been successfully updated with the code."), "a.py");
  EXPECT_EQ(subjects_in("The import has been successfully added to `recorder.py`."), "recorder.py");
  EXPECT_EQ(kinds_in("I removed old.txt."), "file_deleted");
  EXPECT_EQ(kinds_in("I created a new script."), "file_written");
}

TEST(Claims, AnEditWithoutAFileIsNoClaimAboutAFile) {
  EXPECT_EQ(kinds_in("I added a check for the empty list."), "action");
}

TEST(Claims, WhatIsRemovedFromAFileIsNoFile) {
  EXPECT_EQ(kinds_in("The duplication in the `a.py` script has been removed."), "action");
  EXPECT_EQ(kinds_in("I removed the duplicate lines from `a.py`."), "action");
  EXPECT_EQ(subjects_in("I deleted the script `a.py`."), "a.py");
}

TEST(Claims, AnActionIsAClaimIfTheAgentSaysThatItIsDone) {
  EXPECT_EQ(kinds_in("I’ve booked the flight for May 4."), "action");
  EXPECT_EQ(kinds_in("The refund has been issued."), "action");
  EXPECT_EQ(kinds_in("I scheduled the demo and emailed the agenda."), "action action");
  EXPECT_EQ(kinds_in("I was able to cancel the order."), "action");
  EXPECT_EQ(kinds_in("I could not book the flight."), "");
  EXPECT_EQ(kinds_in("Shall I book the flight?"), "");
  EXPECT_EQ(kinds_in("The flight will be booked once you confirm."), "");
  EXPECT_EQ(kinds_in("The reservation was made more than 24 hours ago."), "");
  EXPECT_EQ(kinds_in("I reviewed the order."), "");
}

TEST(Claims, ATestThatIsNamedIsTheSubject) {
  EXPECT_EQ(subjects_in("`tests/test_login.py::test_ok` passes."), "tests/test_login.py::test_ok");
  EXPECT_EQ(subjects_in("test_login passes."), "test_login");
}

TEST(Claims, ARouteIsNoFile) {
  EXPECT_EQ(kinds_in("We created a new `/server_info` endpoint."), "action");
  EXPECT_EQ(subjects_in("I created `/srv/server_info` and `.gitignore`."), "/srv/server_info .gitignore");
}

TEST(Claims, AProposalAnOrderAndAFindingAreNoClaims) {
  EXPECT_EQ(kinds_in("A potential solution is a step that fixes the sign."), "");
  EXPECT_EQ(kinds_in("Run the full test suite to ensure that nothing breaks."), "");
  EXPECT_EQ(kinds_in("Now that we've confirmed the location of the file, let's open it."), "");
  EXPECT_EQ(kinds_in("This allows the test suite to run successfully."), "");
}

TEST(Claims, NumbersOfTestsAreRead) {
  const auto sentences = sentences_of("All 42 tests pass.");
  ASSERT_EQ(sentences.size(), 1U);
  const auto said = claims_in(sentences[0]);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(!said[0].count || *said[0].count == 42);
  EXPECT_EQ(claims_in(sentences_of("42 tests passed.")[0]).at(0).count, 42);
}

TEST(Claims, BuildsLintersAndTypesHaveTheirKinds) {
  EXPECT_EQ(kinds_in("The build succeeds."), "build_succeeds");
  EXPECT_EQ(kinds_in("The project builds without errors."), "build_succeeds");
  EXPECT_EQ(kinds_in("The build fails."), "build_fails");
  EXPECT_EQ(kinds_in("It does not compile."), "build_fails");
  EXPECT_EQ(kinds_in("There are no lint errors."), "lint_clean");
  EXPECT_EQ(kinds_in("ruff passes."), "lint_clean");
  EXPECT_EQ(kinds_in("mypy reports no issues."), "types_check");
  EXPECT_EQ(kinds_in("There are no type errors."), "types_check");
}

TEST(Claims, CountsOfFailuresDecideWhatIsClaimed) {
  EXPECT_EQ(kinds_in("2 tests failed, 10 passed."), "tests_fail");
  EXPECT_EQ(kinds_in("10 passed, 0 failed."), "tests_pass");
  EXPECT_EQ(kinds_in("0 tests failed."), "tests_pass");
  EXPECT_EQ(kinds_in("All tests passing (42/42)"), "tests_pass");
}

TEST(Claims, ChecksInShortFormsAreClaimed) {
  EXPECT_EQ(kinds_in("The code compiles."), "build_succeeds");
  EXPECT_EQ(kinds_in("Lint and type checks pass."), "types_check lint_clean");
  EXPECT_EQ(kinds_in("No errors were found by mypy."), "types_check");
  EXPECT_EQ(kinds_in("CI is green."), "verified");
  EXPECT_EQ(kinds_in("The code builds a list of names."), "");
}

TEST(Claims, DeedsHaveTheirKinds) {
  EXPECT_EQ(kinds_in("I deployed the service."), "deployed");
  EXPECT_EQ(kinds_in("The release has been published."), "deployed");
  EXPECT_EQ(kinds_in("I committed the change."), "committed");
  EXPECT_EQ(kinds_in("I pushed the branch."), "pushed");
  EXPECT_EQ(kinds_in("I opened a pull request."), "pushed");
  EXPECT_EQ(kinds_in("I installed the dependencies."), "installed");
  EXPECT_EQ(kinds_in("It works as expected."), "verified");
  EXPECT_EQ(kinds_in("The script runs without errors."), "verified");
}

TEST(Claims, ItemsOfAPlanClaimWhatTheyOrder) {
  EXPECT_EQ(claim_of_item("Run the test suite")->kind, Kind::tests_run);
  EXPECT_EQ(claim_of_item("Make sure all tests pass")->kind, Kind::tests_pass);
  EXPECT_EQ(claim_of_item("Fix the login bug")->kind, Kind::fixed);
  EXPECT_EQ(claim_of_item("Deploy to staging")->kind, Kind::deployed);
  EXPECT_EQ(claim_of_item("Create src/a.py")->subject, "src/a.py");
  EXPECT_FALSE(claim_of_item("Think about the design"));
}

TEST(Sentences, LinesOfAParagraphAreJoined) {
  const auto sentences = sentences_of("All\ntests pass. Next\none.\n\n- an item\n- [ ] tests pass");
  ASSERT_EQ(sentences.size(), 3U);
  EXPECT_EQ(sentences[0].text, "All tests pass.");
  EXPECT_EQ(sentences[2].text, "an item");
}

TEST(Sentences, APeriodInANameEndsNone) { EXPECT_EQ(sentences_of("See foo.py and 3.5 there.").size(), 1U); }

TEST(Sentences, ALongSentenceIsCutAtItsLimit) {
  EXPECT_EQ(sentences_of(std::string(sentence_bytes_max, 'a')).size(), 1U);
  EXPECT_EQ(sentences_of(std::string(sentence_bytes_max + 1, 'a')).size(), 2U);
}

TEST(Sentences, TheirNumberIsLimited) {
  std::string text;
  for (std::size_t i = 0; i <= sentences_max; ++i) text += "So.\n\n";
  EXPECT_EQ(sentences_of(text).size(), sentences_max);
}

TEST(Sentences, UnclosedMarksAndBytesThatAreNoTextAreRead) {
  std::string marks;
  for (std::size_t i = 0; i < 100'000; ++i) marks += "a\"`'";
  EXPECT_EQ(sentences_of(marks).size(), 400'000 / sentence_bytes_max);
  EXPECT_FALSE(sentences_of("\xff\xfe tests pass\x80.").empty());
}

}  // namespace
}  // namespace muniment::evidence::run_judge
