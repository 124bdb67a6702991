// Tests the reading of issues that bd prints, and the limits of a call of bd.
#include <gtest/gtest.h>

#include <string>

#include "cli/bead/bd_issue.hpp"
#include "cli/bead/bd_program.hpp"

namespace muniment::cli {
namespace {

constexpr const char* issue = R"({"id":"bd-a1b2","title":"Reject expired tokens","status":"closed",
  "closed_at":"2026-06-01T12:00:00Z","priority":1,"metadata":{"muniment":{"run_id":"r"},"other":1}})";

TEST(BdIssue, AnArrayAnObjectAndAnEnvelopeAreTheSame) {
  const std::string text = issue;
  const std::string legacy = R"({"schema_version":1,)" + text.substr(1);
  for (const std::string& output : {text, "[" + text + "]", legacy, R"({"schema_version":1,"data":)" + text + "}",
                                    R"({"schema_version":1,"data":[)" + text + "]}"}) {
    const auto read = parse_issue(output, "bd show");
    ASSERT_TRUE(read.ok()) << output << read.error().message;
    EXPECT_EQ(read->id, "bd-a1b2");
    EXPECT_EQ(read->title, "Reject expired tokens");
    EXPECT_EQ(read->closed_at, "2026-06-01T12:00:00Z");
    EXPECT_TRUE(read->closed());
    EXPECT_TRUE(read->marked);
  }
}

TEST(BdIssue, AListMayBeEmpty) {
  for (const char* output :
       {"[]", "null", R"({"schema_version":1,"data":[]})", R"({"schema_version":1,"data":null})"}) {
    const auto read = parse_issues(output, "bd list");
    ASSERT_TRUE(read.ok()) << output;
    EXPECT_TRUE(read->issues.empty());
    EXPECT_FALSE(parse_issue(output, "bd show").ok());
  }
}

TEST(BdIssue, OtherOutputIsRefused) {
  for (const char* output :
       {"", "bd: no database", "{", "1", "\"bd-1\"", "{}", "[1, 1e999, [2]", R"({"id":1,"title":"t","status":"open"})",
        R"({"id":"bd-1","id":"bd-2","title":"t","status":"open"})", R"({"id":"--force","title":"t","status":"open"})",
        R"({"id":"bd-1","title":"t","status":null})", R"({"error":"no database","schema_version":1})"}) {
    const auto read = parse_issues(output, "bd list");
    ASSERT_FALSE(read.ok()) << output;
    EXPECT_EQ(read.error().code, Errc::conflict);
    EXPECT_NE(read.error().message.find("bd list"), std::string::npos);
  }
  for (const char* output : {"[1]", R"([{"id":"bd-1"}])", R"([{"id":"bd-1","id":"bd-2"}])", "[1e]"}) {
    const auto read = parse_issues(output, "bd list");
    ASSERT_TRUE(read.ok()) << output;
    EXPECT_EQ(read->problems.size(), 1U) << output;
    EXPECT_TRUE(read->issues.empty());
    EXPECT_FALSE(parse_issue(output, "bd show").ok());
  }
  const std::string two = std::string("[") + issue + "," + issue + "]";
  EXPECT_FALSE(parse_issue(two, "bd show").ok());
}

TEST(BdIssue, AnIdIsOnePrintableWord) {
  for (const char* good : {"bd-1", "gt--xyz", "beads-a3f8e9.1", "x"}) EXPECT_TRUE(check_issue_id(good).ok()) << good;
  for (const std::string& bad :
       {std::string(), std::string("-x"), std::string("--force"), std::string("a b"), std::string("a\n"),
        std::string("a\0b", 3), std::string("\xc3\xbc"), std::string(257, 'b')})
    EXPECT_FALSE(check_issue_id(bad).ok()) << bad;
}

TEST(BdProgram, ItsOutputIsReturned) {
  const auto output = run_bd({"/bin/echo"}, {"show", "bd-1"});
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(*output, "show bd-1 --json\n");
}

TEST(BdProgram, AWordIsNotReadByAShell) {
  const auto output = run_bd({"echo"}, {"$(id)", "; id", "`id`"});
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(*output, "$(id) ; id `id` --json\n");
}

TEST(BdProgram, AFailureIsReportedWithItsMessage) {
  const auto output = run_bd({"/bin/ls"}, {"/nowhere"});
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code, Errc::conflict);
  EXPECT_NE(output.error().message.find("exit code"), std::string::npos);
}

TEST(BdProgram, AMissingProgramIsReported) {
  const auto output = run_bd({"/nowhere/bd"}, {"list"});
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code, Errc::not_found);
}

}  // namespace
}  // namespace muniment::cli
