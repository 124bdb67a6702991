#include <gtest/gtest.h>

#include "base/limits.hpp"
#include "completion_fixture.hpp"
#include "evidence/completion/changes/diff.hpp"
#include "evidence/completion/changes/rust_tests.hpp"
#include "evidence/completion/checks.hpp"
#include "evidence/completion/text/summary.hpp"

namespace muniment::evidence::completion {
namespace {

Piece recorded(std::vector<std::string> argv, std::optional<std::int64_t> exit_code = 0) {
  Piece piece = recorded_piece();
  piece.command->argv = std::move(argv);
  piece.command->exit_code = exit_code;
  return piece;
}

Piece with_counts(reports::Counts counts) {
  Piece piece = recorded_piece();
  piece.command->report->counts = counts;
  return piece;
}

TEST(Structure, ARecordedRunThatPassedIsStrong) {
  const Judgement judgement = judged(recorded_piece());
  EXPECT_TRUE(judgement.can_complete) << judgement.reason;
  EXPECT_TRUE(judgement.evidence_status[0].strong);
}

TEST(Structure, AnExitStatusOtherThanZeroFails) {
  EXPECT_EQ(blocked_by(judged(recorded({"pytest"}, 1))), "command_failed");
}

TEST(Structure, AZeroExitWithFailuresContradicts) {
  const Judgement judgement = judged(with_counts({3, 2, 1, 0}));
  EXPECT_TRUE(has_finding(judgement, "exit_contradicts"));
  EXPECT_TRUE(has_finding(judgement, "tests_failed"));
}

TEST(Structure, ACommandThatASignalEndedIsInconclusive) {
  Piece piece = recorded({"pytest"}, std::nullopt);
  piece.command->signal = "SIGKILL";
  EXPECT_EQ(judged(piece).verdict, Verdict::inconclusive);
  EXPECT_EQ(blocked_by(judged(piece)), "exit_unknown");
}

TEST(Structure, AnInterruptedRecordingAndLostOutputAreInconclusive) {
  Piece piece = recorded_piece();
  piece.command->interrupted = true;
  EXPECT_EQ(blocked_by(judged(piece)), "interrupted");
  piece = recorded_piece();
  piece.command->output_lost = true;
  EXPECT_EQ(blocked_by(judged(piece)), "output_lost");
}

TEST(Structure, ZeroTestsFail) { EXPECT_EQ(blocked_by(judged(with_counts({0, 0, 0, 0}))), "zero_tests"); }

TEST(Structure, TestsThatWereAllSkippedFail) {
  EXPECT_EQ(blocked_by(judged(with_counts({5, 0, 0, 5}))), "all_skipped");
}

TEST(Structure, FourSkippedForEachThatRanAreTheMost) {
  EXPECT_EQ(blocked_by(judged(with_counts({5, 1, 0, 4}))), "");
  EXPECT_EQ(blocked_by(judged(with_counts({6, 1, 0, 5}))), "mostly_skipped");
}

TEST(Structure, CountsThatDoNotAddUpFail) {
  const Judgement judgement = judged(with_counts({3, 4, 0, 0}));
  EXPECT_EQ(blocked_by(judgement), "counts_disagree");
  EXPECT_EQ(judgement.verdict, Verdict::fail);
}

TEST(Structure, AReportThatContradictsItselfFails) {
  Piece piece = recorded_piece();
  piece.command->report->problem = "the summary states 9 tests, 3 are listed";
  EXPECT_EQ(blocked_by(judged(piece)), "counts_disagree");
}

TEST(Structure, TotalsThatDifferFromTheListAndFlakyTestsAreNoted) {
  Piece piece = recorded_piece();
  piece.command->report = reports::read_report(
      "<testsuite tests='5' failures='1'><testcase name='a'><flakyFailure/></testcase><testcase name='b'/></testsuite>");
  const Judgement judgement = judged(piece);
  EXPECT_TRUE(judgement.can_complete) << judgement.reason;
  EXPECT_TRUE(has_finding(judgement, "counts_disagree", false));
  EXPECT_TRUE(has_finding(judgement, "flaky_tests", false));
}

TEST(Structure, OnlyDifferentStoredBytesAreTampering) {
  for (const CodeRow& row : code_rows()) {
    const bool bytes = row.code == Code::damaged || row.code == Code::dependency_damaged;
    EXPECT_EQ(row.verdict == Verdict::tampered, bytes) << row.name;
    EXPECT_EQ(row.violation == "tampering", bytes) << row.name;
  }
}

TEST(Structure, AReportWithoutItsEndIsTruncated) {
  Piece piece = recorded_piece();
  piece.command->report->complete = false;
  EXPECT_EQ(blocked_by(judged(piece)), "truncated");
}

TEST(Structure, AReportThatIsCutIsNoContradiction) {
  Piece piece = recorded_piece();
  piece.command->report = reports::read_report("<testsuite name='a' tests='1'><testcase name='t'/>");
  const Judgement judgement = judged(piece);
  EXPECT_EQ(judgement.findings.front().code, "truncated");
  EXPECT_EQ(judgement.verdict, Verdict::inconclusive);
}

TEST(Structure, AReportThatTheParserRefusesIsRefusedWithItsReason) {
  const std::string suite = "<testsuite name='a' tests='1'><testcase name='t'/></testsuite>";
  const std::pair<std::string, std::string> cases[] = {
      {"<!DOCTYPE testsuite>" + suite, "document type declarations are not accepted"},
      {"<?xml version='1.0' encoding='klingon'?>" + suite, "the encoding \"klingon\" is not supported"},
      {"<testsuite tests='1'><testcase name='a'</testsuite>", "not well-formed"}};
  for (const auto& [text, reason] : cases) {
    Piece piece = recorded_piece();
    piece.command->report = reports::read_report(text);
    ASSERT_TRUE(piece.command->report) << text;
    const Judgement judgement = judged(piece);
    EXPECT_EQ(judgement.findings.front().code, "unreadable") << judgement.reason;
    EXPECT_NE(judgement.reason.find(reason), std::string::npos) << judgement.reason;
    EXPECT_EQ(judgement.reason.find("truncated"), std::string::npos) << judgement.reason;
    EXPECT_EQ(judgement.verdict, Verdict::inconclusive) << judgement.reason;
  }
}

TEST(Structure, FewerTestsThanInTheLastAcceptedRunFail) {
  Piece piece = recorded_piece();
  piece.command->earlier = reports::Counts{4, 4, 0, 0};
  EXPECT_EQ(blocked_by(judged(piece)), "fewer_tests");
  piece.command->tests_changed_reason = "test_legacy covered code that is gone";
  EXPECT_TRUE(judged(piece).can_complete);
}

TEST(Structure, TestsThatPassedAndAreSkippedNowFail) {
  Piece piece = with_counts({4, 3, 0, 1});
  piece.command->earlier = reports::Counts{4, 4, 0, 0};
  EXPECT_EQ(blocked_by(judged(piece)), "more_skipped");
}

TEST(Structure, MoreTestsThanBeforePass) {
  Piece piece = recorded_piece();
  piece.command->earlier = reports::Counts{2, 2, 0, 0};
  EXPECT_EQ(blocked_by(judged(piece)), "");
}

TEST(Structure, ChangedTestsNeedAReason) {
  Piece piece = recorded_piece();
  piece.command->tests_changed = {"tests/test_auth.py"};
  EXPECT_EQ(blocked_by(judged(piece)), "tests_changed");
  piece.command->tests_changed_reason = "  ";
  EXPECT_EQ(blocked_by(judged(piece)), "tests_changed");
  piece.command->tests_changed_reason = "new tests of the login";
  EXPECT_TRUE(judged(piece).can_complete);
}

TEST(Structure, AReportOlderThanTheCommandIsStale) {
  Piece piece = recorded_piece();
  piece.command->report_modified_at = piece.command->started_at;
  EXPECT_EQ(blocked_by(judged(piece)), "");
  piece.command->report_modified_at = Time{piece.command->started_at.micros - limits::file_time_tick_micros};
  EXPECT_EQ(blocked_by(judged(piece)), "");
  piece.command->report_modified_at = Time{piece.command->started_at.micros - limits::file_time_tick_micros - 1};
  EXPECT_EQ(blocked_by(judged(piece)), "old_report");
}

TEST(Structure, AReportThatChangedAfterTheCommandIsStale) {
  Piece piece = recorded_piece();
  piece.command->report_modified_at = piece.command->report_newest_at = piece.command->ended_at;
  EXPECT_EQ(blocked_by(judged(piece)), "");
  piece.command->report_newest_at = Time{piece.command->ended_at.micros + 1};
  EXPECT_EQ(blocked_by(judged(piece)), "old_report");
}

TEST(Structure, TheOutputAgreesWithTheReportFiles) {
  Piece piece = recorded_piece();
  piece.command->report_files = 1;
  piece.command->output = reports::Counts{3, 3, 0, 0};
  EXPECT_TRUE(judged(piece).evidence_status[0].strong);
  piece.command->output = reports::Counts{3, 2, 1, 0};
  EXPECT_EQ(blocked_by(judged(piece)), "output_disagrees");
  piece.command->output = reports::Counts{5, 5, 0, 0};
  EXPECT_EQ(blocked_by(judged(piece)), "");
  EXPECT_EQ(blocked_by(judged(authentication(), {piece}, strict_policy())), "output_disagrees");
  piece.command->output = reports::Counts{2, 2, 0, 0};
  EXPECT_TRUE(judged(piece).evidence_status[0].strong);
}

TEST(Structure, ATreeThatChangedAfterTheRunIsStale) {
  Piece piece = recorded_piece();
  piece.command->tree_after = "sha256:aa";
  Task task = authentication();
  task.tree_digest = "sha256:bb";
  EXPECT_EQ(blocked_by(judged(task, {piece})), "tree_changed");
  task.tree_digest = "sha256:aa";
  EXPECT_EQ(blocked_by(judged(task, {piece})), "");
}

TEST(Structure, AReasonThatIsMissingAndOneThatNamesNothingAreAskedForInTheirWords) {
  Piece piece = recorded_piece();
  piece.command->tests_changed = {"tests/test_auth.py"};
  const std::string missing = judged(piece).reason;
  EXPECT_NE(missing.find("--tests-changed REASON"), std::string::npos) << missing;
  piece.command->tests_changed_reason = "x";
  const std::string thin = judged(piece).reason;
  EXPECT_NE(thin.find("The reason \"x\" of --tests-changed"), std::string::npos) << thin;
  EXPECT_NE(thin.find("too short"), std::string::npos) << thin;
}

TEST(Structure, ACommitMakesNoEvidenceStale) {
  Piece piece = recorded_piece();
  Task task = authentication();
  const auto code = [&](const char* after, const char* now) {
    piece.command->tree_before = piece.command->tree_after = after;
    task.tree_digest = now;
    return blocked_by(judged(task, {piece}));
  };
  EXPECT_EQ(code("git:11 v2 sha256:aa", "git:22 v2 sha256:aa"), "");
  EXPECT_EQ(code("git:none v2 sha256:aa", "git:22 v2 sha256:aa"), "");
  EXPECT_EQ(code("git:11 sha256:aa", "git:22 sha256:aa"), "");     // both digests have the earlier format
  EXPECT_EQ(code("git:11 sha256:aa", "git:22 v2 sha256:aa"), "");  // the evidence file was not in the tree
  EXPECT_EQ(code("git:11 v2 sha256:aa", "git:11 v2 sha256:bb"), "tree_changed");
  EXPECT_EQ(code("git:11", "git:22"), "tree_changed");
  EXPECT_EQ(code("x sha256:aa", "y sha256:aa"), "tree_changed");
}

TEST(Structure, AnEditAfterTheEvidenceIsAClaimWithoutACheck) {
  Task task = authentication();
  task.files_changed = true;
  EXPECT_EQ(blocked_by(judged(task, {recorded_piece()})), "edited_after");
  EXPECT_EQ(blocked_by(judged(task, {good_piece()})), "edited_after");
}

TEST(Structure, ACommandThatOnlyMentionsARunnerIsNotRun) {
  for (const auto& argv : std::vector<std::vector<std::string>>{{"echo", "pytest: 3 passed"},
                                                                {"cat", "pytest.log"},
                                                                {"sh", "-c", "printf '3 passed'"},
                                                                {"python3", "-c", "print('3 passed')"},
                                                                {"pytest", "--version"},
                                                                {"grep", "pytest", "log"}}) {
    EXPECT_EQ(blocked_by(judged(recorded(argv))), "not_run") << argv[0];
  }
}

TEST(Structure, AnUnknownProgramIsWeakUnlessThePolicyNamesIt) {
  const Piece piece = recorded({"./selftest"});
  EXPECT_TRUE(judged(piece).can_complete);
  EXPECT_FALSE(judged(piece).evidence_status[0].strong);
  EXPECT_FALSE(judged(authentication(), {piece}, strict_policy()).can_complete);
  Policy policy = strict_policy();
  policy.runners = {"selftest"};
  EXPECT_TRUE(judged(authentication(), {piece}, policy).can_complete);
}

TEST(Structure, ATestRunWithinALongerScriptIsWeak) {
  for (const char* script : {"pytest tests/test_auth.py >/dev/null; echo '3 passed in 0.01s'",
                             "pytest tests/test_auth.py | grep -o '3 passed in.*'",
                             "pytest tests/test_auth.py && echo '3 passed in 0.01s'"}) {
    const Piece piece = recorded({"sh", "-c", script});
    const Judgement judgement = judged(piece);
    EXPECT_TRUE(judgement.can_complete) << judgement.reason;
    EXPECT_FALSE(judgement.evidence_status[0].strong) << script;
    EXPECT_TRUE(has_finding(judgement, "indirect_run", false));
    const Judgement strict = judged(authentication(), {piece}, strict_policy());
    EXPECT_EQ(blocked_by(strict), "indirect_run") << script;
    EXPECT_EQ(strict.verdict, Verdict::weak);
    EXPECT_NE(strict.reason.find("Run the test runner directly"), std::string::npos) << strict.reason;
    EXPECT_EQ(strict.evidence_status[0].code, "indirect_run");
  }
}

TEST(Structure, ADirectRunBesideAnIndirectOneCompletesAStrictTask) {
  Piece direct = recorded({"sh", "-c", "cd tests && pytest -q"});
  direct.evidence_id = "e2";
  const Judgement judgement = judged(
      authentication(), {recorded({"sh", "-c", "pytest tests/test_auth.py | tee log"}), direct}, strict_policy());
  EXPECT_TRUE(judgement.can_complete) << judgement.reason;
  EXPECT_FALSE(judgement.evidence_status[0].strong);
  EXPECT_TRUE(judgement.evidence_status[1].strong);
}

TEST(Structure, OtherEvidenceOfATaskOfTestsIsNotStrongByAnIndirectRun) {
  Piece piece = recorded({"sh", "-c", "pytest tests/test_auth.py >/dev/null; echo '3 passed in 0.01s'"});
  piece.type = "deployment";
  EXPECT_FALSE(judged(piece).evidence_status[0].strong);
  const Judgement strict = judged(task_of("Make the authentication tests pass"), {piece}, strict_policy());
  EXPECT_EQ(blocked_by(strict), "indirect_run") << strict.reason;
}

TEST(Structure, AMaskedExitWithoutAReportIsInconclusive) {
  Piece piece = recorded({"sh", "-c", "pytest || true"});
  piece.command->report.reset();
  EXPECT_EQ(blocked_by(judged(piece)), "exit_masked");
}

TEST(Structure, ARunnerWithoutAReportIsAcceptedAndNotStrong) {
  Piece piece = recorded({"make", "check"});
  piece.command->report.reset();
  piece.text = "done";
  const Judgement judgement = judged(piece);
  EXPECT_TRUE(judgement.can_complete) << judgement.reason;
  EXPECT_FALSE(judgement.evidence_status[0].strong);
  EXPECT_TRUE(has_finding(judgement, "no_report", false));
}

TEST(Structure, ARunnerWithoutAReportWhoseLastLinesCountPassedTestsIsStrong) {
  Piece piece = recorded({"make", "check"});
  piece.command->report.reset();
  piece.text = "tests finished: 12 passed, 2 skipped, in 3.21 seconds";
  EXPECT_TRUE(judged(piece).evidence_status[0].strong);
  piece.text = "tests finished: 12 passed, 1 failed, in 3.21 seconds";
  EXPECT_FALSE(judged(piece).evidence_status[0].strong);
}

TEST(Structure, ARunnerThatEndsWithCountsDidNotEndWithoutThem) {
  for (const auto& argv : std::vector<std::vector<std::string>>{
           {"pytest", "-q"}, {"python3", "-m", "pytest"}, {"npx", "mocha"}, {"go", "test", "-v", "./..."}}) {
    Piece piece = recorded(argv);
    piece.command->report.reset();
    piece.text = "";
    EXPECT_EQ(blocked_by(judged(piece)), "not_ended") << argv[0];
    EXPECT_NE(judged(piece).reason.find("exits before its tests end"), std::string::npos);
    piece.type = "log";
    EXPECT_EQ(blocked_by(judged(task_of("Make the tests pass"), {piece})), "not_ended") << argv[0];
  }
}

TEST(Structure, LinesOfPackagesOfGoShowNoTest) {
  Piece piece = recorded({"go", "test", "-v", "./..."});
  piece.command->report = reports::read_report("ok  \texample.org/x\t0.006s\n");
  EXPECT_EQ(blocked_by(judged(piece)), "zero_tests");
  piece.command->argv = {"go", "test", "./..."};
  const Judgement judgement = judged(piece);
  EXPECT_EQ(blocked_by(judgement), "");
  EXPECT_FALSE(judgement.evidence_status[0].strong);
  const Judgement strict = judged(authentication(), {piece}, strict_policy());
  EXPECT_EQ(blocked_by(strict), "unlisted");
  EXPECT_NE(strict.reason.find("-v or -json"), std::string::npos) << strict.reason;
}

TEST(Structure, APackageOfGoWithoutATestBesideOthersIsWeak) {
  Piece piece = recorded({"go", "test", "-v", "./..."});
  piece.command->report = reports::read_report(
      "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \texample.org/x\t0.006s\nok  \texample.org/y\t0.006s\n");
  EXPECT_EQ(piece.command->report->counts, (reports::Counts{1, 1, 0, 0}));
  EXPECT_EQ(blocked_by(judged(authentication(), {piece}, strict_policy())), "unlisted");
}

TEST(Structure, AProgramWithTheOptionsOfGoogleTestIsARunner) {
  Piece piece = recorded({"build/matrix_test", "--gtest_output=xml:r.xml"});
  EXPECT_TRUE(judged(piece).evidence_status[0].strong);
}

TEST(Structure, AReasonForChangedTestsNamesSomething) {
  Piece piece = recorded_piece();
  piece.command->tests_changed = {"tests/test_auth.py"};
  for (const char* empty : {"TODO", "needed", "updated the tests", "n/a"}) {
    piece.command->tests_changed_reason = empty;
    EXPECT_EQ(blocked_by(judged(piece)), "tests_changed") << empty;
  }
  piece.command->tests_changed_reason = "the token is a header now, no cookie";
  EXPECT_EQ(blocked_by(judged(piece)), "");
}

TEST(Structure, ADiffThatSkipsATestOrAssertsNothingWeakensIt) {
  const std::string head =
      "diff --git a/t/test_auth.py b/t/test_auth.py\n--- a/t/test_auth.py\n+++ b/t/test_auth.py\n@@ -1,4 +1,4 @@\n";
  EXPECT_EQ(code_of_text(head + "+@pytest.mark.skip\n def test_login():\n     assert login(1)\n"), "tests_weakened");
  EXPECT_EQ(code_of_text(head + " def test_login():\n-    assert login(1) == 2\n+    assert True\n"), "tests_weakened");
  EXPECT_EQ(code_of_text(head + "-def test_login():\n-    assert login(1) == 2\n+# moved\n"), "tests_weakened");
  EXPECT_EQ(code_of_text(head + " def test_login():\n-    assert login(1) == 2\n+    assert login(1) == 3\n"), "");
}

// Returns whether the diff of a file with this old text only adds tests. `old` and `added`: lines; the added ones are
// inserted after the first `at` lines.
bool adds_only(const std::vector<std::string>& old, std::size_t at, const std::vector<std::string>& added) {
  std::string diff = "diff --git a/t b/t\n--- a/t\n+++ b/t\n@@ -1,9 +1,9 @@\n", text;
  for (std::size_t i = 0; i <= old.size(); ++i) {
    if (i == at) {
      for (const std::string& line : added) diff += "+" + line + "\n";
    }
    if (i < old.size()) diff += " " + old[i] + "\n", text += old[i] + "\n";
  }
  return only_adds_tests(diff, text);
}

const std::vector<std::string> python_tests{
    "from calc import add",     "", "def test_add():", "    assert add(1, 2) == 3", "", "", "def test_zero():",
    "    assert add(0, 0) == 0"};

TEST(Structure, AnAddedTestIsAnAddition) {
  EXPECT_TRUE(
      adds_only(python_tests, 8, {"", "", "def test_more():", "    value = add(2, 2)", "    assert value == 4"}));
  EXPECT_TRUE(adds_only(python_tests, 5, {"", "def test_more():", "    assert add(2, 2) == 4", ""}));
  EXPECT_TRUE(adds_only(python_tests, 1, {"from calc import double"}));
  EXPECT_TRUE(adds_only({"TEST(Sum, Adds) {", "  EXPECT_EQ(sum(1, 2), 3);", "}"}, 3,
                        {"", "TEST(Sum, Exits) {", "  EXPECT_EQ(exit(sum(0, 0)), 0);", "}"}));
  EXPECT_TRUE(adds_only({"describe('sum', () => {", "  it('adds', () => {", "    expect(1).toBe(1);", "  });", "});"},
                        4, {"  it('more', () => {", "    expect(2).toBe(2);", "  });"}));
}

TEST(Structure, AnAdditionThatCanWeakenTestsIsAChange) {
  EXPECT_FALSE(adds_only(python_tests, 3, {"    return"}));
  EXPECT_FALSE(adds_only(python_tests, 3, {"    pass", "", "def unused():"}));  // takes the assertion
  EXPECT_FALSE(adds_only(python_tests, 2, {"@pytest.mark.skip"}));
  EXPECT_FALSE(adds_only(python_tests, 2, {"@quiet"}));
  EXPECT_FALSE(adds_only(python_tests, 8, {"", "def test_add():", "    assert True"}));  // replaces the test
  EXPECT_FALSE(adds_only(python_tests, 1, {"from stub import add"}));
  EXPECT_FALSE(adds_only(python_tests, 8, {"", "def test_more():", "    pass", "add = max"}));
  EXPECT_FALSE(adds_only(python_tests, 8, {"", "@pytest.fixture(autouse=True)", "def quiet():", "    pass"}));
  EXPECT_FALSE(adds_only(python_tests, 8, {"", "def pytest_runtest_call(item):", "    pass"}));
  EXPECT_FALSE(adds_only({"TEST(A, B) {", "  EXPECT_EQ(1, 2);", "}"}, 0, {"#define EXPECT_EQ(a, b)"}));
  EXPECT_FALSE(
      only_adds_tests("diff --git a/t b/t\n@@ -1 +1 @@\n-assert a\n+def test_b():\n+    pass\n", "assert a\n"));
  EXPECT_FALSE(only_adds_tests("Binary files a/t and b/t differ\n", ""));
}

std::string rust_kinds(const std::string& text) {
  std::string kinds;
  for (const RustLine line : rust_lines(text)) kinds += "pte"[static_cast<std::size_t>(line)];
  return kinds;
}

TEST(RustTests, TheirLinesAreFound) {
  EXPECT_EQ(rust_kinds("fn a() {}\n// of a\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}"), "ptttttp");
  EXPECT_EQ(rust_kinds("#[cfg(not(test))]\nfn a() {}\n#[cfg(all(test, unix))]\nuse x::{y, z};\nfn b() {}"), "ppttp");
  EXPECT_EQ(
      rust_kinds(
          "#[tokio::test]\nasync fn a() -> [u8; 2] {\n  \"}\"; '}'; r#\"}\"}\"#; /* } */ // }\n  f::<'a>()\n}\nfn b() {}"),
      "tttttp");
  EXPECT_EQ(rust_kinds("/// Adds.\n/// ```\n/// assert!(true);\n/// ```\n/// ```text\n/// x\n/// ```\nfn a() {}"),
            "peeepppp");
  EXPECT_EQ(rust_kinds("#![cfg(test)]\nfn a() {}"), "tt");
  EXPECT_EQ(rust_kinds("#[cfg_attr(test, derive(Debug))]\nstruct A {\n}"), "ppp");
}

// Returns whether the replacement of `from` by `to` changes the tests of the program.
bool changes_tests(const std::string& from, const std::string& to, const std::string& program = "") {
  const std::string text =
      !program.empty()
          ? program
          : "/// Adds.\n/// ```\n/// assert_eq!(add(1, 2), 3);\n/// ```\npub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n"
            "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n"
            "        assert_eq!(add(1, 2), 3);\n    }\n}\n";
  const std::size_t begin = text.rfind('\n', text.find(from)) + 1, end = text.find(from) + from.size();
  const std::string head = text.substr(0, begin), tail = text.substr(end), changed = text.substr(begin, end - begin);
  const std::string replaced = changed.substr(0, changed.size() - from.size()) + to;
  std::string diff = "@@ -1,30 +1,30 @@\n";
  const auto put = [&](char sign, std::string_view lines) {
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find('\n'));
      diff += sign + std::string(line) + "\n";
      lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    }
  };
  put(' ', head);
  if (to.ends_with(from) && to.size() > from.size() && to[to.size() - from.size() - 1] == '\n') {  // added before
    put('+', replaced.substr(0, replaced.size() - from.size()));
    put(' ', from + tail.substr(0, tail.find('\n')));
    put(' ', tail.substr(tail.find('\n') + 1));
  } else {
    const std::string rest = tail.substr(0, tail.find('\n'));
    put('-', changed + rest);
    put('+', replaced + rest);
    put(' ', tail.substr(tail.find('\n') + 1));
  }
  return changes_rust_tests(diff, text, head + replaced + tail);
}

TEST(RustTests, AChangedTestWithinAProgramIsAChange) {
  EXPECT_FALSE(changes_tests("    a + b", "    b + a"));
  EXPECT_FALSE(changes_tests("/// Adds.", "/// Adds two numbers."));
  EXPECT_FALSE(changes_tests("pub fn add", "fn zero() {}\npub fn add"));
  EXPECT_TRUE(changes_tests("    assert_eq!(add(1, 2), 3);", "    assert_eq!(add(1, 2), add(1, 2));"));
  EXPECT_TRUE(changes_tests("/// assert_eq!(add(1, 2), 3);", "/// assert!(true);"));
  EXPECT_TRUE(changes_tests("/// ```\n/// assert", "/// ```ignore\n/// assert"));
  EXPECT_TRUE(changes_tests("/// assert_eq!", "/// return;\n/// assert_eq!"));
  EXPECT_TRUE(changes_tests("#[cfg(test)]", "#[cfg(any())]\n#[cfg(test)]"));
  EXPECT_TRUE(changes_tests("#[cfg(test)]", "/*\n#[cfg(test)]"));
  EXPECT_TRUE(changes_tests("        assert_eq!", "        return;\n        assert_eq!"));
  EXPECT_TRUE(changes_tests("    #[test]", "    #[ignore]\n    #[test]"));
}

TEST(RustTests, AnAddedTestWithinAProgramIsAnAddition) {
  EXPECT_FALSE(changes_tests("    #[test]",
                             "    #[test]\n    fn zero() {\n        assert_eq!(add(0, 0), 0);\n    }\n\n    #[test]"));
  EXPECT_FALSE(changes_tests("/// Adds.", "/// ```\n/// assert_eq!(add(0, 0), 0);\n/// ```\n/// Adds."));
  EXPECT_FALSE(changes_tests("fn b() {}", "#[cfg(test)]\nmod tests {\n    fn setup() {}\n}\nfn b() {}",
                             "fn a() {}\nfn b() {}\n"));
}

TEST(Structure, NamesThatSkipTestsAreToldFromOthers) {
  for (const char* line :
       {"    import pytest; pytest.skip(\"later\")", "raise unittest.SkipTest('x')", "\tt.Skip()", "xit('adds')"})
    EXPECT_TRUE(skips_tests(line)) << line;
  for (const char* line : {"raise SkipTest", "class Later(unittest.SkipTest):", "@pytest.mark.skipif(True)",
                           "    return pytest.skip", "#[ignore = \"slow\"]", "Assumptions.assumeThat(x)"})
    EXPECT_TRUE(skips_tests(line)) << line;
  for (const char* line : {"items.skip(3)", "std::exit(0)", "list.stream().skip(1)", "first.Skip(2)",
                           "class SkipTestError(Exception):", "raise SkipTestError()",
                           "class SkipTest(Exception):", "def skipTest(self):", "#define GTEST_SKIP()", "@IgnoreCase",
                           "// Assumptions. The list is sorted."})
    EXPECT_FALSE(skips_tests(line)) << line;
}

TEST(Structure, AReasonForChangedTestsIsNoMashAndIsNotStrong) {
  Piece piece = recorded_piece();
  piece.command->tests_changed = {"tests/test_auth.py"};
  piece.command->tests_changed_reason = "asdf qwer zxcv";
  piece.command->tests_diff = "tests/test_auth.py\n-assert login(1) == 2\n+assert login(1)\n";
  EXPECT_EQ(blocked_by(judged(piece)), "tests_changed");
  piece.command->tests_changed_reason = "login returns the session and no longer its number";
  EXPECT_TRUE(judged(piece).can_complete);
  const Judgement strict = judged(authentication(), {piece}, strict_policy());
  EXPECT_EQ(blocked_by(strict), "tests_changed");
  EXPECT_NE(strict.reason.find("-assert login(1) == 2"), std::string::npos) << strict.reason;
  Policy policy = strict_policy();
  policy.allowed = {"tests_changed"};
  EXPECT_TRUE(judged(authentication(), {piece}, policy).can_complete);
}

TEST(Structure, AProgramThatGainedASkipIsWeak) {
  Piece piece = recorded_piece();
  piece.command->skips_added = {"src/calc.py"};
  EXPECT_TRUE(judged(piece).can_complete);
  const Judgement strict = judged(authentication(), {piece}, strict_policy());
  EXPECT_EQ(blocked_by(strict), "skips_added");
  EXPECT_NE(strict.reason.find("src/calc.py"), std::string::npos);
}

TEST(Structure, OtherTypesThanTestOutputAreStrongByTheirExitStatus) {
  Piece piece = recorded({"ninja", "-C", "build"});
  piece.type = "build";
  piece.command->report.reset();
  EXPECT_TRUE(judged(piece).evidence_status[0].strong);
}

// Returns a log of a recorded command without a report.
Piece recorded_log(std::vector<std::string> argv, std::string text) {
  Piece piece = recorded(std::move(argv));
  piece.type = "log";
  piece.text = std::move(text);
  piece.command->report.reset();
  return piece;
}

const std::vector<std::string> test_tasks{"Make the login tests pass", "Get pytest green for the login",
                                          "Fix the login until jest is happy"};

TEST(Structure, ALogOfAnotherCommandCompletesNoTaskOfTestsUnderTheStrictPolicy) {
  for (const auto& argv : std::vector<std::vector<std::string>>{{"make", "all"}, {"./x"}, {"sh", "-c", "./login"}}) {
    const Piece piece = recorded_log(argv, "login: cc -o login login.c\nlogin: linked 14 objects in 3.1 s");
    for (const std::string& content : test_tasks) {
      const Judgement judgement = judged(task_of(content), {piece}, strict_policy());
      EXPECT_EQ(blocked_by(judgement), "self_reported") << content << ": " << argv[0];
      EXPECT_FALSE(judgement.evidence_status[0].strong) << content << ": " << argv[0];
      EXPECT_NE(judgement.reason.find("mentions tests"), std::string::npos) << judgement.reason;
    }
    EXPECT_TRUE(judged(task_of("Build the login"), {piece}, strict_policy()).can_complete) << argv[0];
  }
}

TEST(Structure, ARunOfTestsCompletesATaskOfTestsUnderTheStrictPolicyWhateverItsType) {
  Piece reported = recorded_piece(),
        counted = recorded_log({"make", "check"}, "tests/test_login.py: 12 passed in 3.21s");
  reported.command->argv = {"pytest"};
  for (const char* type : {"test_output", "log"}) {
    reported.type = counted.type = type;
    reported.text = "tests/test_login.py ... 3 passed in 0.05s";
    for (const Piece& piece : {reported, counted}) {
      const Judgement judgement = judged(task_of("Make the login tests pass"), {piece}, strict_policy());
      EXPECT_TRUE(judgement.can_complete) << type << ": " << judgement.reason;
    }
  }
}

TEST(Structure, ARunnerThatShowsNoCountCompletesNoTaskOfTestsUnderTheStrictPolicy) {
  const Piece piece = recorded_log({"pytest"}, "login 14 modules collected in 3.1 s from shop/login.py");
  EXPECT_FALSE(judged(task_of("Make the login tests pass"), {piece}, strict_policy()).can_complete);
}

TEST(Structure, OnlyThePolicySaysThatOtherEvidenceShowsATaskOfTests) {
  const Piece piece = recorded_log({"./login-fixtures"}, "login: wrote 14 fixtures of shop/login.py in 3.1 s");
  Task task = task_of("Write fixtures for the login tests");
  task.required_type = "log";
  EXPECT_EQ(blocked_by(judged(task, {piece}, strict_policy())), "self_reported");
  Policy policy = strict_policy();
  policy.required_type = "log";
  EXPECT_EQ(blocked_by(judged(task, {piece}, policy)), "");
}

TEST(Structure, ATextThatReportsNoTestsOrSkippedTestsOrFailuresIsRefused) {
  EXPECT_EQ(code_of_text("auth\nRan 0 tests in 0.000s\n\nOK"), "zero_tests");
  EXPECT_EQ(code_of_text("auth tests/auth.py 2026-11-26\nno tests ran in 0.01s"), "zero_tests");
  EXPECT_EQ(code_of_text("auth tests/auth.py\nRan 12 tests in 0.010s\n\nOK (skipped=12)"), "all_skipped");
  EXPECT_EQ(code_of_text("auth tests/auth.py\nRan 12 tests in 0.010s\n\nFAILED (failures=2)"), "tests_failed");
}

TEST(Structure, ATextThatStatesAFailedExitIsRefused) {
  EXPECT_EQ(code_of_text(std::string(good_text) + "\nexit code: 1"), "command_failed");
  EXPECT_EQ(code_of_text(std::string(good_text) + "\nexit code: 0"), "");
}

TEST(Structure, AListOfTestsWithoutASummaryIsTruncated) {
  EXPECT_EQ(
      code_of_text(
          "test_login (auth.tests) ... ok\ntest_logout (auth.tests) ... ok\ntest_x (auth.tests) ... ok\ntest_y (auth.te"),
      "truncated");
}

TEST(Structure, ATextThatSaysThatItWasCutIsTruncated) {
  EXPECT_EQ(code_of_text("auth tests log 2026-11-26 12:00:01 test_login\n[output truncated]"), "truncated");
}

TEST(Structure, AWeakenedTestInTheAgentsOwnWordsIsRefused) {
  EXPECT_EQ(
      code_of_text("Removed the failing assertion in tests/test_auth.py, then 14 tests of 3 files were fine in 2.1s"),
      "tests_weakened");
  EXPECT_EQ(code_of_text("No tests were removed from tests/test_auth.py; looked at 14 files, measured 2.1s"), "");
}

TEST(Structure, AReviewThatDidNotApproveIsRefused) {
  EXPECT_EQ(
      blocked_by(judged(task_of("Get code reviewed"), {piece_of_json(R"({"approved":false,"reviewer":"human"})")})),
      "tests_failed");
}

TEST(Structure, JsonOfARunWithoutTestsIsRefused) {
  EXPECT_TRUE(has_finding(
      judged(task_of("Run tests"), {piece_of_json(R"({"duration":"3s","failed":0,"total":0})", "test_output")}),
      "zero_tests"));
}

TEST(Summary, CountsAreReadFromSummaryLinesOnly) {
  EXPECT_EQ(summary_of("==== 45 passed, 2 skipped in 7.98 seconds ====").passed, 45);
  EXPECT_EQ(summary_of("Tests run: 5, Failures: 1, Errors: 0, Skipped: 2").skipped, 2);
  EXPECT_FALSE(
      summary_of("After 3 failed attempts of the login the account stayed locked for an hour of the day").failed);
}

TEST(Summary, AnExitStatusIsReadAtTheEndOfAShortLine) {
  EXPECT_EQ(summary_of("Process finished with exit code 2").exit_status, 2);
  EXPECT_EQ(summary_of("[x] Return Code: 0").exit_status, 0);
  EXPECT_FALSE(
      summary_of("the tool answers invalid input with exit code 2 and a message on standard error").exit_status);
}

TEST(Structure, TheCountsOfJsonAddUp) {
  EXPECT_EQ(
      blocked_by(judged(piece_of_json(R"({"suite":"authentication","total":60,"passed":6,"failed":0,"skipped":0})"))),
      "counts_disagree");
  EXPECT_EQ(
      blocked_by(judged(piece_of_json(R"({"suite":"authentication","total":6,"passed":5,"failed":0,"skipped":1})"))),
      "");
}

TEST(Structure, TheCountsOfClassesAddUpToTheTotal) {
  const std::string one =
      "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.4 s - in AuthenticationTest\n";
  EXPECT_EQ(code_of_text(one + "[INFO] Tests run: 41, Failures: 0, Errors: 0, Skipped: 0\n"), "counts_disagree");
  EXPECT_EQ(code_of_text(one + "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n"), "");
}

TEST(Structure, ASummaryOfSnapshotsCountsNoTests) {
  const std::string head = "authentication: src/auth.test.js\n";
  EXPECT_EQ(code_of_text(head + "Tests:       2 passed, 2 total\nSnapshots:   0 total\n"), "");
  EXPECT_EQ(code_of_text(head + "Tests:       6 passed, 9 total\nSnapshots:   0 total\n"), "counts_disagree");
}

TEST(Structure, FaultsThatACheckerCountsAreFailures) {
  EXPECT_EQ(code_of_text("src/auth.py:12: authentication returns None\nFound 2 errors in 1 file"), "tests_failed");
  EXPECT_EQ(code_of_text("authentication 2.1 and 14 modules: found 0 vulnerabilities in 812 packages"), "");
}

TEST(Structure, LinesThatWereSkippedAreNoCutOutsideOfAnAside) {
  EXPECT_EQ(code_of_text("Authentication scan, 17 files:\nTotal lines skipped (#nosec): 0"), "");
  EXPECT_EQ(code_of_text("Authentication scan, 17 files:\n[12 lines skipped]\n14 modules in 3 s"), "truncated");
}

TEST(Structure, ATestThatWasDisabledBeforeIsNotWeakened) {
  EXPECT_EQ(code_of_text("authentication/login_test: 14 tests passed\n\n  YOU HAVE 1 DISABLED TEST\n"), "");
}

TEST(Structure, AnotherTypeIsStrongByAProgramThatShowsIt) {
  Piece piece = recorded({"git", "show", "--stat", "HEAD"});
  piece.type = "diff";
  piece.command->report.reset();
  piece.text = "authentication: shop/auth.py | 2 +-";
  EXPECT_TRUE(judged(piece).evidence_status[0].strong);
}

TEST(Structure, AnUnknownProgramThatNamesARunnerAndShowsNoTestDidNotRunIt) {
  Piece piece = recorded({"pipx", "install", "pytest"});
  piece.command->report.reset();
  piece.text = "done";
  EXPECT_EQ(blocked_by(judged(piece)), "not_run");
}

TEST(Structure, FailuresOfTheStateBeforeAreNone) {
  EXPECT_EQ(
      blocked_by(judged(piece_of_json(R"({"suite":"authentication","before":{"errors":12},"after":{"errors":0}})"))),
      "");
  EXPECT_EQ(
      blocked_by(judged(piece_of_json(R"({"suite":"authentication","before":{"errors":12},"after":{"errors":1}})"))),
      "tests_failed");
}

TEST(Structure, AFailureBesideAnObjectOfALongNameIsSeen) {
  std::string members = R"("a":0)";
  for (int i = 0; i < 100'000; ++i) members += ",\"a" + std::to_string(i) + "\":0";
  EXPECT_TRUE(
      has_finding(judged(piece_of_json("{\"failures\":2,\"" + std::string(1 << 20, 'n') + "\":{" + members + "}}")),
                  "tests_failed"));
}

TEST(Structure, AnotherTypeThanTestsMayShowARunnersPackage) {
  Piece piece = recorded({"pip", "show", "pytest"});
  piece.type = "artifact";
  piece.command->report.reset();
  piece.text = "Name: pytest\nVersion: 9.2.0\nauthentication plugin: none";
  EXPECT_EQ(blocked_by(judged(piece)), "");
}

}  // namespace
}  // namespace muniment::evidence::completion
