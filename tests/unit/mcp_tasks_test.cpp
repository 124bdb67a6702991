// Tests of the toolset "tasks": the texts that a model receives about a task that ends with evidence, and the toolset's
// prompt.
#include <fmt/format.h>

#include "unit/mcp_fixture.hpp"

namespace muniment::mcp {
namespace {

constexpr const char* task_tools[] = {"open_task", "validate_todo", "complete_task"};

struct TaskHost : Host {
  TaskHost() : Host({.record = true, .run_id = "r1", .toolsets = {"tasks"}}) {
    native.at_once = {{"run.start", "{}"}};
    open();
  }
  // Returns the text of the tool's answer to this result of its method.
  std::string said(std::string_view tool, std::string_view method, const std::string& result) {
    call_tool(tool, R"({"task_id":"t1","evidence_ids":["e1"]})");
    const std::string id = last_id();
    native.answer(method, result);
    const Json answered = answer(id);
    EXPECT_FALSE(is_error(answered)) << "a refused completion is a result";
    EXPECT_EQ(answered["result"]["structuredContent"].source(), result);
    return text_of(answered);
  }
};

std::string judged(bool can_complete, std::string_view verdict, std::string_view reason, std::string_view findings,
                   std::string_view more) {
  return fmt::format(
      R"({{"can_complete":{},"verdict":"{}","reason":"{}","evidence_status":{{}},"findings":[{}],"halted":[],)"
      R"("run_id":"r1","task_id":"t1"{}}})",
      can_complete, verdict, reason, findings, more);
}

std::string finding(std::string_view code, std::string_view evidence, std::string_view text, bool blocks = true) {
  return fmt::format(R"({{"check":"c","code":"{}","blocks":{}{},"text":"{}"}})", code, blocks,
                     evidence.empty() ? "" : fmt::format(R"(,"evidence_id":"{}")", evidence), text);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(McpTasks, TheToolsAreOfferedWithTheirToolsetAlone) {
  Host usual;
  usual.open();
  for (const char* tool : task_tools) EXPECT_EQ(error_code(usual.call_tool(tool)), invalid_params) << tool;
  EXPECT_TRUE(usual.native.requests.empty());
  TaskHost host;
  const std::string list = host.ask("tools/list").text();
  for (const char* tool : task_tools) EXPECT_TRUE(has(list, fmt::format(R"("name":"{}")", tool))) << tool;
}

TEST(McpTasks, ATaskIsOpenedInTheSessionsRun) {
  TaskHost host;
  host.call_tool("open_task", R"({"content":"Fix it","required_type":"test_output"})");
  const std::string id = host.last_id();
  const Json params = host.native.params("task.open");
  EXPECT_EQ(params["run_id"].string_or(""), "r1");
  EXPECT_EQ(params["required_type"].string_or(""), "test_output");
  host.native.answer("task.open", R"({"task_id":"t1","run_id":"r1","seq":7,"duplicate":false})");
  const std::string text = text_of(host.answer(id));
  EXPECT_TRUE(text.starts_with("Task t1 opened at seq 7.")) << text;
  EXPECT_TRUE(has(text, "complete_task")) << text;
  EXPECT_TRUE(has(text, "muniment exec --run r1 --evidence test_output --task t1 -- COMMAND")) << text;
}

TEST(McpTasks, ATaskThatWasOpenedBeforeIsSaidToBe) {
  TaskHost host;
  host.call_tool("open_task", R"({"content":"Fix it"})");
  const std::string id = host.last_id();
  host.native.answer("task.open", R"({"task_id":"t1","run_id":"r1","seq":7,"duplicate":true})");
  EXPECT_TRUE(has(text_of(host.answer(id)), "opened before"));
}

TEST(McpTasks, ARefusedCompletionNamesEvidenceCodeAndNextStep) {
  TaskHost host;
  const std::string text =
      host.said("complete_task", "task.complete",
                judged(false, "fail", "Weak or placeholder evidence",
                       finding("placeholder", "e1", "It contains TODO. Record the output of the check.") + "," +
                           finding("untested", "", "No test ran. Run the tests with muniment exec.") + "," +
                           finding("about_sql", "e1", "It is about SQL.", false),
                       R"(,"completed":false)"));
  EXPECT_TRUE(text.starts_with("Task t1 is not completed: refused (fail): Weak or placeholder evidence")) << text;
  EXPECT_TRUE(has(text, "\n- evidence e1: placeholder: It contains TODO. Record the output of the check.")) << text;
  EXPECT_TRUE(has(text, "\n- untested: No test ran. Run the tests with muniment exec.")) << text;
  EXPECT_TRUE(has(text, "\n- note: evidence e1: about_sql:")) << "what does not block is a note: " << text;
  EXPECT_TRUE(has(text, "Do not report it as done")) << text;
}

TEST(McpTasks, ACompletedTaskSaysSoAndNoMore) {
  TaskHost host;
  const std::string text =
      host.said("complete_task", "task.complete", judged(true, "pass", "good", "", R"(,"completed":true,"seq":12)"));
  EXPECT_EQ(text, "Task t1 completed at seq 12 (pass): good");
}

TEST(McpTasks, AJudgementThatWasNotCarriedOutIsNotACompletion) {
  TaskHost host;
  const std::string text = host.said("complete_task", "task.complete", judged(true, "pass", "good", "", ""));
  EXPECT_TRUE(has(text, "is not completed")) << "only `completed` says that it was: " << text;
}

TEST(McpTasks, ValidationSaysWhetherItCouldBeCompleted) {
  TaskHost host;
  EXPECT_EQ(host.said("validate_todo", "task.validate", judged(true, "weak", "accepted", "", "")),
            "The task can be completed with this evidence (weak): accepted");
  EXPECT_EQ(
      host.said("validate_todo", "task.validate",
                judged(false, "inconclusive", "stale", finding("stale", "e1", "Record it again."), "")),
      "The task cannot be completed with this evidence (inconclusive): stale\n- evidence e1: stale: Record it again.");
}

TEST(McpTasks, ManyAndLongFindingsAreCut) {
  TaskHost host;
  std::string findings;
  for (int i = 0; i < 100; ++i)
    findings += (i == 0 ? "" : ",") + finding("stale", fmt::format("e{}", i), std::string(5'000, 'x'));
  const std::string text = host.said("validate_todo", "task.validate", judged(false, "fail", "stale", findings, ""));
  EXPECT_TRUE(has(text, "- evidence e19: "));
  EXPECT_FALSE(has(text, "- evidence e20: "));
  EXPECT_TRUE(has(text, "and 80 more findings"));
  EXPECT_LT(text.size(), 12'000U);
}

TEST(McpTasks, WhatBlocksComesBeforeNotes) {
  TaskHost host;
  const std::string text = host.said(
      "validate_todo", "task.validate",
      judged(false, "fail", "bad", finding("noted", "e1", "n", false) + "," + finding("blocking", "e2", "b"), ""));
  EXPECT_LT(text.find("blocking"), text.find("noted"));
}

TEST(McpTasks, AStoppedRunIsSaid) {
  TaskHost host;
  std::string result = judged(false, "fail", "gone", "", R"(,"completed":false)");
  const std::string none = R"("halted":[])";
  result.replace(result.find(none), none.size(),
                 R"("halted":[{"run_id":"r1","code":"SYSTEM_ERROR","pointer":"p","reason":"gone"}])");
  EXPECT_TRUE(has(host.said("complete_task", "task.complete", result), "muniment recover r1"));
}

TEST(McpTasks, ThePromptNamesTheToolsAndTheRecordedCommand) {
  Host host({.toolsets = {"tasks"}});
  host.open();
  const Json got = host.ask("prompts/get", R"({"name":"validate_completion","arguments":{"task":"t1"}})");
  const std::string text = (*got["result"]["messages"].begin())["content"]["text"].string_or("");
  for (const char* tool : task_tools) EXPECT_TRUE(has(text, tool)) << tool;
  EXPECT_TRUE(has(text, "this task is done: t1")) << text;
  EXPECT_TRUE(has(text, "muniment exec --run RUN --evidence test_output")) << text;
}

}  // namespace
}  // namespace muniment::mcp
