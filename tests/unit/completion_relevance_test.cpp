#include <gtest/gtest.h>

#include "completion_fixture.hpp"
#include "evidence/completion/text/task_terms.hpp"

namespace muniment::evidence::completion {
namespace {

std::string code_for(std::string task, std::string text, std::string type = "test_output") {
  return blocked_by(judged(task_of(std::move(task)), {piece_of(std::move(text), std::move(type))}));
}

TEST(Relevance, EvidenceOfAnotherSubjectIsAMismatch) {
  const Judgement judgement = judged(task_of("Implement payment processing module"), {good_piece()});
  EXPECT_EQ(blocked_by(judgement), "mismatch");
  EXPECT_NE(judgement.reason.find("Evidence mismatch"), std::string::npos);
  EXPECT_NE(judgement.reason.find("\"payment\""), std::string::npos);
}

TEST(Relevance, ASharedKindOfThingIsNoSubject) {
  EXPECT_EQ(code_for("Implement payment processing module",
                     "Authentication module: 15 tests passed in 2.3s, module coverage 98%"),
            "mismatch");
  EXPECT_EQ(code_for("Implement JSON parser", "YAML parser tests: test_yaml_lists PASSED, 14 passed in 0.2s"),
            "mismatch");
  EXPECT_EQ(code_for("Implement image service API", "Billing service API answered 12 requests in 3s with status 200"),
            "mismatch");
}

TEST(Relevance, TheSurroundingsWithoutTheObjectAreANearMiss) {
  EXPECT_EQ(
      code_for("Add pagination to the orders API", "orders API: filtering by customer returned 12 orders in 40 ms"),
      "mismatch");
  EXPECT_EQ(code_for("Fix login timeout in session manager",
                     "Login button colour on the landing page verified in Chrome 120, #0055cc"),
            "mismatch");
  EXPECT_EQ(
      code_for("Implement email notifications service", "Push notifications service: 8 passed in 0.4s test_push_token"),
      "mismatch");
}

TEST(Relevance, TheNamesOfTestsAndPathsAreTheSubject) {
  EXPECT_EQ(code_for("Add pagination to the orders API",
                     "tests/test_pagination.py::test_first_page PASSED\n1 passed in 0.2s"),
            "");
  EXPECT_EQ(code_for("Fix session timeout",
                     "--- PASS: TestSessionTimeout (0.00s)\nPASS\nok  \tgithub.com/acme/session\t0.012s"),
            "");
}

TEST(Relevance, AnAbbreviationThatBeginsTheTermNamesIt) {
  EXPECT_EQ(code_for("Implement authentication module", "tests/test_auth.py::test_a PASSED\n1 passed in 0.2s"), "");
}

TEST(Relevance, OtherFormsOfAWordNameTheTerm) {
  EXPECT_EQ(code_for("Fix caching of thumbnails",
                     "Looked at thumbnail_cache.py:40, cached entries expire after 60 s now; measured 3 ms a hit."),
            "");
}

TEST(Relevance, TheOutputOfASuiteWithoutNamesFitsATaskOfTesting) {
  EXPECT_EQ(code_for("Run the test suite", "12 passed in 0.31s"), "");
  EXPECT_EQ(code_for("Fix the failing tests", "........ [100%]\n8 passed in 1.22s"), "");
}

TEST(Relevance, TerseOutputThatNamesNoSubjectIsNotedAndNotRefused) {
  for (const char* output :
       {"12 passed in 0.31s", "ok  \texample.org/tools/internal/calc\t0.002s",
        "   Compiling app v0.3.1 (/srv/rs)\n    Finished `dev` profile [unoptimized] target(s) in 0.71s"}) {
    const Judgement judgement = judged(task_of("Implement payment retries"), {piece_of(output, "test_output")});
    EXPECT_EQ(blocked_by(judgement), "") << output;
    ASSERT_EQ(judgement.findings.size(), 1U) << output;
    EXPECT_EQ(judgement.findings[0].code, "unnamed");
    EXPECT_EQ(judgement.findings[0].verdict, Verdict::weak);
  }
}

TEST(Relevance, ANameOfAnotherSubjectInTerseOutputIsAMismatch) {
  EXPECT_EQ(code_for("Implement payment retries", "tests/test_shipping_labels.py ...   [100%]\n3 passed in 0.04s"),
            "mismatch");
  EXPECT_EQ(code_for("Implement payment retries",
                     "# Subtest: formats prices with digits\nok 1 - formats prices with digits\n1..1\n# tests 1\n"
                     "# pass 1\n# fail 0\n"),
            "mismatch");
}

TEST(Relevance, AFileBesideTheTasksOwnIsAMismatch) {
  const std::string found = ": no issues found in 1 source file, 0 errors, checked in 0.4s";
  EXPECT_EQ(code_for("Annotate src/scheduler.py", "$ mypy src/mailer.py\nsrc/mailer.py" + found, "lint"), "mismatch");
  EXPECT_EQ(code_for("Annotate src/scheduler.py", "$ mypy src/scheduler.py\nsrc/scheduler.py" + found, "lint"), "");
  EXPECT_EQ(code_for("Annotate src/scheduler.py", "$ mypy src\nsrc" + found, "lint"), "");
}

TEST(Relevance, AnEndpointBesideTheTasksOwnIsAMismatch) {
  EXPECT_EQ(code_for("GET /orders returns 200 for an empty shop",
                     "$ curl -s http://localhost:8080/customers\n200 in 0.012 s, 20 items", "http"),
            "mismatch");
  EXPECT_EQ(code_for("GET /orders returns 200 for an empty shop",
                     "$ curl -s http://localhost:8080/orders?page=1\n200 in 0.012 s, 20 items", "http"),
            "");
}

TEST(Relevance, AQuotedNameBesideTheTasksKindIsAMismatch) {
  const std::string columns = "\n id | integer | not null\nIndexes: 2, 4812 rows";
  EXPECT_EQ(code_for("Add an index to the orders table", "Table \"public.customers\"" + columns, "database"),
            "mismatch");
  EXPECT_EQ(code_for("Add an index to the orders table", "Table \"public.orders\"" + columns, "database"), "");
}

TEST(Relevance, ARecordedSuiteWithoutNamesFitsANamedSubject) {
  Piece piece = recorded_piece();
  piece.command->argv = {"pytest", "-q"};
  EXPECT_EQ(blocked_by(judged(task_of("Implement payment retries"), {piece})), "");
}

TEST(Relevance, TheValueOfARunnersOptionNamesNoSubject) {
  Piece piece = recorded_piece();
  piece.command->argv = {"timeout", "100", "pytest", "-q", "-p", "no:cacheprovider", "--color", "yes.txt"};
  EXPECT_EQ(blocked_by(judged(task_of("Implement payment retries"), {piece})), "");
}

TEST(Relevance, ARecordedCommandThatNamesAnotherTargetIsAMismatch) {
  EXPECT_EQ(blocked_by(judged(task_of("Implement payment retries"), {recorded_piece()})), "mismatch");
}

TEST(Relevance, TheMetadataOfATextCountsAndSoDoesItsType) {
  Piece piece = piece_of("14 passed, 0 failed in 2.1s");
  piece.content = R"({"metadata":{"suite":"authentication"},"text":"14 passed, 0 failed in 2.1s"})";
  EXPECT_EQ(blocked_by(judged(piece)), "");
}

TEST(Relevance, ATaskOfReviewTakesAReview) {
  EXPECT_EQ(
      blocked_by(judged(task_of("Get code reviewed"), {piece_of_json(R"({"approved":true,"reviewer":"human"})")})), "");
}

TEST(Relevance, ATaskOfReviewDoesNotTakeARunOfTests) {
  EXPECT_EQ(blocked_by(judged(task_of("Get code reviewed"), {piece_of("14 passed in 2.1s of 3 files")})), "mismatch");
}

TEST(Relevance, TheFrameOfARunnerNamesNoSubject) {
  EXPECT_EQ(code_for("Fix session starts",
                     "===== test session starts =====\nplatform linux -- Python 3.11.2\ncollected 2 items\n\n"
                     "tests/test_invoice.py ..   [100%]\n\n===== 2 passed in 0.05s ====="),
            "mismatch");
}

TEST(Relevance, ASiblingInThePlaceOfTheSubjectIsAMismatch) {
  EXPECT_EQ(code_for("Add CSV export", "tests/test_csv_import.py::test_import_reads_rows PASSED\n1 passed in 0.2s"),
            "mismatch");
  EXPECT_EQ(
      code_for("Add CSV export", "tests/test_csv.py::test_export_quotes PASSED\n1 passed in 0.2s, import untouched"),
      "");
  EXPECT_EQ(
      code_for("Review the authentication module",
               "Reviewed the scheduling module: 14 calls traced, two tests added for nested roles, approved by Ann",
               "code_review"),
      "mismatch");
}

TEST(Relevance, AnotherNumberOfTheSameNameIsAMismatch) {
  EXPECT_EQ(code_for("Review PR 418 (rename Customer)",
                     "PR 481: rename of Customer in 12 files, compiled by 3 jobs, approved", "code_review"),
            "mismatch");
  EXPECT_EQ(code_for("Review PR 418 (rename Customer)",
                     "PR 418: rename of Customer in 12 files, compiled by 3 jobs, approved", "code_review"),
            "");
  EXPECT_EQ(
      code_for("Replace the disk in node 3", "Disk sdf in node 5 replaced at 14:10, rebuild took 3 h 52 min", "log"),
      "mismatch");
  EXPECT_EQ(
      code_for("Replace the disk in node 3", "Disk sdf in node3 replaced at 14:10, rebuild took 2 h 52 min", "log"),
      "");
}

TEST(Relevance, ANumberThatMeasuresNamesNothing) {
  EXPECT_EQ(
      code_for("Make search answer in under 200 ms", "search answered 1,000 requests in 180 ms p95, max 190 ms", "log"),
      "");
}

TEST(Relevance, TheVerbAtTheHeadOfATaskNamesNothing) {
  EXPECT_EQ(terms_of("Archive the orders").specific, terms_of("orders").specific);
}

TEST(TaskTerms, VerbsStopWordsAndTestWordsAreNoTerms) { EXPECT_TRUE(terms_of("Fix and run the tests").terms.empty()); }

TEST(TaskTerms, WhatFollowsAPrepositionWeighsLess) {
  const TaskTerms terms = terms_of("Add pagination to orders");
  ASSERT_EQ(terms.terms.size(), 2U);
  EXPECT_GT(terms.terms[0].weight, terms.terms[1].weight);
}

TEST(TaskTerms, ATokenOfCodeWeighsFullWhereverItIs) {
  const TaskTerms terms = terms_of("Fix crash in has_thumbnail");
  ASSERT_FALSE(terms.terms.empty());
  EXPECT_EQ(terms.terms.back().word, "thumbnail");
  EXPECT_EQ(terms.terms.back().weight, 4);
}

TEST(TaskTerms, AtMostSixtyFourTermsAreKept) {
  std::string content;
  for (char a = 'a'; a <= 'z'; ++a) {
    for (const char* end : {"orx", "umbz", "ilk", "ept"}) ((content += a) += end) += ' ';
  }
  EXPECT_EQ(terms_of(content).terms.size(), task_terms_max);
}

TEST(TaskTerms, NoTermIsReadBehindTheLimitOfBytes) {
  EXPECT_TRUE(terms_of(std::string(task_bytes_read_max, ' ') + "payment").terms.empty());
  EXPECT_EQ(terms_of(std::string(task_bytes_read_max - 7, ' ') + "payment").terms.size(), 1U);
}

TEST(Relevance, TheRunOfAWholeSuiteIsAboutEveryTask) {
  EXPECT_EQ(code_for("Drop support of old clients",
                     "tests/test_a.py ..\ntests/test_b.py ...\ntests/test_c.py .\n6 passed in 0.2s"),
            "");
}

TEST(Relevance, FiguresWithoutASubjectAreOfNoOther) {
  EXPECT_EQ(blocked_by(
                judged(task_of("Benchmark the serializer"), {piece_of_json(R"({"before_ms":41.2,"runs":50})", "log")})),
            "");
  EXPECT_EQ(blocked_by(judged(task_of("Measure payments"),
                              {piece_of_json(R"({"module":"slug","p95":41.2,"runs":50})", "log")})),
            "mismatch");
}

TEST(Relevance, TheExtensionOfAFileIsNoSibling) {
  EXPECT_EQ(code_for("JSON export of orders", "configfile: pyproject.toml\ntests/test_orders.py ..\n2 passed in 0.2s"),
            "");
}

}  // namespace
}  // namespace muniment::evidence::completion
