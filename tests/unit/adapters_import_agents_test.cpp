// Tests of the importers of SWE-agent and mini-swe-agent trajectories in their current formats: the inputs of
// ../shared/cases with their expected values, and small inputs for variants of the same formats.
#include "adapters/import/formats/formats.hpp"
#include "adapters/import/formats/swe_agent_action.hpp"
#include "support/agent_traces.hpp"

namespace muniment::cli {
namespace {

// SWE-agent.

ImportedRun swe_agent_run(const std::string& text) {
  const ParsedTrace source(text);
  EXPECT_TRUE(is_swe_agent(source.first()));
  auto runs = translate_swe_agent(source.first());
  EXPECT_TRUE(runs.ok() && runs->size() == 1) << (runs ? "" : runs.error().message);
  return runs ? std::move(runs->front()) : ImportedRun();
}

TEST(SweAgentToday, ARunOfVersion1HasItsGoalTextsEditsDurationsAndModel) {
  REQUIRE_CASE("swe-agent-1x");
  const ImportedRun run = swe_agent_run(text_of_case("swe-agent-1x/one.traj"));
  const RunEvents events(run);
  EXPECT_EQ(run.goal, "Deltas are cut instead of rounded");
  EXPECT_EQ(run.end.outcome, "success");
  EXPECT_EQ(run.end.summary, "submitted");
  EXPECT_EQ(run.end.usage, R"({"input_tokens":9000,"output_tokens":400,"cost":{"amount":0.05,"currency":"USD"}})");
  EXPECT_EQ(run.submission, "diff --git a/src/delta.py b/src/delta.py\n");
  EXPECT_EQ(events.all("file.changed", "path"), (Texts{"/repo/show.py", "/repo/src/delta.py"}));
  EXPECT_EQ(events.all("file.changed", "change"), (Texts{"created", "modified"}));
  EXPECT_EQ(events.all("file.changed", "call_id"), (Texts{"call_0", "call_1"}));
  EXPECT_EQ(events.all("tool.called", "name"), (Texts{"str_replace_editor", "str_replace_editor", "bash", "submit"}));
  EXPECT_EQ(events.all("tool.called", "kind"), (Texts{"function", "function", "command", "function"}));
  EXPECT_EQ(events.all("tool.called", "arguments")[2], R"({"command": "python show.py"})");
  EXPECT_EQ(events.all("tool.returned", "duration_us"), (Texts{"250000", "1250000", "2250000", "3250000"}));
  EXPECT_EQ(events.all("tool.returned", "status"), (Texts{"ok", "ok", "unknown", "unknown"}));
  EXPECT_EQ(events.all("model.answered", "model"), (Texts(4, "claude-m-1")));
  EXPECT_EQ(events.all("model.called", "model"), (Texts(4, "claude-m-1")));
  EXPECT_EQ(events.all("state.patched", "patch"), (Texts{R"({"open_file":"n/a","working_dir":"/repo"})"}));
  const Texts messages = events.texts("message.added");
  ASSERT_EQ(messages.size(), 6U);
  EXPECT_TRUE(messages[1].starts_with("<uploaded_files>\n/repo\n")) << messages[1];
  EXPECT_EQ(messages[2], "OBSERVATION:\nFile created successfully at: /repo/show.py");
  EXPECT_TRUE(events.hold(R"({"type":"reasoning","content":"hm"})"));
  EXPECT_TRUE(events.hold(R"("signature":"c2ln")"));
  EXPECT_TRUE(events.hold("ephemeral")) << "cache_control is kept";
}

TEST(SweAgentToday, ADemonstrationHasATurnForEachAnswer) {
  REQUIRE_CASE("swe-agent-1x");
  const ImportedRun run = swe_agent_run(text_of_case("swe-agent-1x/history-only.traj"));
  const RunEvents events(run);
  EXPECT_EQ(run.goal, "Deltas are cut instead of rounded");
  EXPECT_EQ(run.end.outcome, "unknown");
  EXPECT_EQ(events.count("model.answered"), 4U);
  EXPECT_EQ(events.count("tool.returned"), 4U);
  EXPECT_EQ(events.count("message.added"), 2U);
  EXPECT_EQ(events.all("file.changed", "path"), (Texts{"/repo/show.py", "/repo/src/delta.py"}));
}

TEST(SweAgentToday, ANulInAnObservationIsReplaced) {
  REQUIRE_CASE("swe-agent-1x");
  const ImportedRun run = swe_agent_run(text_of_case("swe-agent-1x/nul.traj"));
  const RunEvents events(run);
  EXPECT_EQ(events.count("tool.returned"), 4U);
  EXPECT_TRUE(events.hold("\xef\xbf\xbd"));
}

std::string swe_agent_turn(const std::string& tool, const std::string& arguments, const std::string& observation) {
  return R"({"trajectory":[{"action":"x","response":"r","thought":"r","state":{"working_dir":"/w"},"observation":)" +
         observation +
         R"(}],"history":[{"role":"assistant","content":"r","action":"x","tool_calls":[{"id":"c","type":"function","function":{"name":")" +
         tool + R"(","arguments":)" + json::quote(arguments) + R"(}}]}],"info":{}})";
}

TEST(SweAgentToday, OnlyAnEditThatWasMadeIsAChange) {
  const auto changes = [](const std::string& tool, const std::string& command, const std::string& observation) {
    const ImportedRun run = swe_agent_run(
        swe_agent_turn(tool, R"({"command":")" + command + R"(","path":"/a b.py"})", json::quote(observation)));
    const RunEvents events(run);
    Texts found = events.all("file.changed", "change");
    found.push_back(events.all("tool.returned", "status")[0]);
    return found;
  };
  const std::string editor = "str_replace_editor";
  EXPECT_EQ(changes(editor, "view", "Here's the result of running `cat -n` on /a b.py:\n     1\tx"), (Texts{"ok"}));
  EXPECT_EQ(changes(editor, "create", "File already exists at: /a b.py. Cannot overwrite files"), (Texts{"error"}));
  EXPECT_EQ(changes(editor, "create", "File created successfully at: /a b.py"), (Texts{"created", "ok"}));
  EXPECT_EQ(changes(editor, "str_replace", "No replacement was performed, old_str `x` did not appear"),
            (Texts{"error"}));
  EXPECT_EQ(changes(editor, "insert", "The file /a b.py has been edited. Here's the result"),
            (Texts{"modified", "ok"}));
  EXPECT_EQ(changes(editor, "undo_edit", "Last edit to /a b.py undone successfully. Here's"),
            (Texts{"modified", "ok"}));
  EXPECT_EQ(changes(editor, "str_replace", "The path /a b.py does not exist."), (Texts{"error"}));
  EXPECT_EQ(changes("edit", "x", "Text replaced. Please review\n[File: /a b.py (1 lines total)]"),
            (Texts{"modified", "ok"}));
  EXPECT_EQ(changes("edit", "x", "Your edit was not applied (file not modified): Text"), (Texts{"error"}));
  EXPECT_EQ(changes("bash", "x", "The command 'sleep' was cancelled because it took more than 30 seconds."),
            (Texts{"timeout"}));
  EXPECT_EQ(changes("bash", "x", "File created successfully at: /a b.py"), (Texts{"unknown"}))
      << "printed by a command";
}

TEST(SweAgentToday, AnObservationThatIsNoTextIsKept) {
  for (const char* observation : {"null", "7", R"([{"type":"text","text":"seen"}])", R"({"a":"kept"})"}) {
    const ImportedRun run = swe_agent_run(swe_agent_turn("bash", "{}", observation));
    const RunEvents events(run);
    EXPECT_EQ(events.count("tool.returned"), 1U) << observation;
    EXPECT_TRUE(std::string_view(observation).find("kept") == std::string_view::npos || events.hold("kept"));
  }
}

TEST(SweAgentToday, AQueryThatRepeatsTheHistoryIsNotKeptTwice) {
  const ImportedRun run = swe_agent_run(
      R"({"trajectory":[{"action":"ls","response":"r","observation":"o","query":[{"role":"user","content":"the task"},{"role":"user","content":"only here"}]}],
          "history":[{"role":"user","content":"the task"},{"role":"assistant","content":"r"}],"info":{}})");
  const RunEvents events(run);
  EXPECT_TRUE(events.hold("only here"));
  EXPECT_EQ(std::count_if(events.bodies.begin(), events.bodies.end(),
                          [](const std::string& body) { return body.find("the task") != std::string::npos; }),
            1);
}

TEST(SweAgentToday, EachAttemptIsARun) {
  const std::string attempt =
      R"({"trajectory":[{"action":"ls","response":"r","observation":"o"}],"history":[{"role":"user","content":"t"}],"info":{"exit_status":"exit_cost"}})";
  const ParsedTrace all(R"({"attempts":[)" + attempt + "," + attempt + "]}");
  ASSERT_TRUE(is_swe_agent(all.first()));
  EXPECT_EQ(translate_swe_agent(all.first())->size(), 2U);
  const ParsedTrace chosen(
      R"({"attempts":[)" + attempt + "," + attempt +
      R"(],"trajectory":[{"action":"ls","response":"r"}],"history":[],"info":{"exit_status":"submitted","best_attempt_idx":1}})");
  const auto runs = translate_swe_agent(chosen.first());
  ASSERT_EQ(runs->size(), 2U);
  EXPECT_EQ((*runs)[0].end.outcome, "success");
  EXPECT_EQ(label((*runs)[1], "attempt"), "0");
  EXPECT_EQ((*runs)[1].end.outcome, "failure");
}

// mini-swe-agent.

ImportedRun mini_run(const std::string& text) {
  const ParsedTrace source(text);
  EXPECT_TRUE(is_mini_swe_agent(source.first()));
  auto run = translate_mini_swe_agent(source.first());
  EXPECT_TRUE(run.ok()) << (run ? "" : run.error().message);
  return run ? std::move(*run) : ImportedRun();
}

constexpr const char* mini_tool_calls = R"({
  "info": {"model_stats": {"instance_cost": 0.03, "api_calls": 3}, "mini_version": "2.4.6", "exit_status": "Submitted", "submission": "diff\n",
           "config": {"model": {"model_name": "a/model"}, "agent_type": "minisweagent.agents.default.DefaultAgent"}},
  "messages": [
    {"role": "system", "content": "You are."},
    {"role": "user", "content": "<pr_description>\nConsider the following PR description:\nRound it\nmore\n</pr_description>\n<instructions>"},
    {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}}],
     "extra": {"actions": [{"command": "ls", "tool_call_id": "c1"}], "cost": 0.01, "timestamp": 1780000000.5,
               "response": {"id": "r1", "model": "a/model-1", "choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": "I look."}}],
                            "usage": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}}}}},
    {"role": "tool", "tool_call_id": "c1", "content": "{\"returncode\": 2}", "extra": {"raw_output": "no such", "returncode": 2, "timestamp": 1780000001.5, "exception_info": ""}},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "c2", "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"sleep 99\"}"}}],
     "extra": {"actions": [{"command": "sleep 99", "tool_call_id": "c2"}], "cost": 0.01}},
    {"role": "tool", "tool_call_id": "c2", "content": "{}", "extra": {"raw_output": "", "returncode": -1, "exception_info": "An error occurred", "exception_type": "TimeoutExpired"}},
    {"role": "assistant", "content": "Done.", "extra": {"actions": [{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}]}},
    {"role": "exit", "content": "diff\n", "extra": {"exit_status": "Submitted", "submission": "diff\n"}}
  ],
  "trajectory_format": "mini-swe-agent-1.1", "instance_id": "demo__demo-1"})";

TEST(MiniSweAgent, CommandsHaveExitCodesAndAnswersHaveUsage) {
  const ImportedRun run = mini_run(mini_tool_calls);
  const RunEvents events(run);
  EXPECT_EQ(run.goal, "Round it");
  EXPECT_EQ(run.external_id, "demo__demo-1");
  EXPECT_EQ(run.end.outcome, "success");
  EXPECT_EQ(run.submission, "diff\n");
  EXPECT_EQ(run.end.usage, "") << "the calls count it";
  EXPECT_EQ(label(run, "instance_cost"), "0.03");
  EXPECT_EQ(events.all("tool.called", "name"), (Texts{"bash", "bash", "bash"}));
  EXPECT_EQ(events.all("tool.called", "kind"), (Texts(3, "command")));
  EXPECT_EQ(events.all("tool.called", "arguments")[0], R"({"command":"ls"})");
  EXPECT_EQ(events.all("tool.returned", "status"), (Texts{"error", "timeout", "ok"}));
  EXPECT_EQ(events.all("tool.returned", "exit_code"), (Texts{"2", "-", "-"}));
  EXPECT_EQ(
      events.all("model.answered", "usage")[0],
      R"({"input_tokens":100,"output_tokens":7,"cached_input_tokens":40,"cost":{"amount":0.01,"currency":"USD"}})");
  EXPECT_EQ(events.all("model.answered", "model"), (Texts{"a/model-1", "a/model", "a/model"}));
  EXPECT_EQ(events.times("model.answered")[0], "2026-05-28T20:26:40.500000Z");
  EXPECT_TRUE(events.hold("no such")) << "the raw output";
}

TEST(MiniSweAgent, Version1HasItsCommandsInTheText) {
  const ImportedRun run = mini_run(
      R"({"info":{"exit_status":"LimitsExceeded","submission":"","model_stats":{"instance_cost":0.1,"api_calls":2},"mini_version":"1.9.0"},
          "messages":[{"role":"user","content":"Please solve this issue: Round it\n\nYou can execute bash commands and edit files"},
            {"role":"assistant","content":"THOUGHT: look\n\n```bash\nls -la\n```","timestamp":1780000000.0},
            {"role":"user","content":"<returncode>1</returncode>\n<output>\nno\n</output>"},
            {"role":"assistant","content":"two\n```bash\na\n```\n```bash\nb\n```"},
            {"role":"user","content":"Please always provide EXACTLY ONE action"}],
          "trajectory_format":"mini-swe-agent-1"})");
  const RunEvents events(run);
  EXPECT_EQ(run.goal, "Round it");
  EXPECT_EQ(run.end.outcome, "failure");
  EXPECT_EQ(run.end.summary, "LimitsExceeded");
  EXPECT_EQ(events.all("tool.called", "arguments"), (Texts{R"({"command":"ls -la"})"}));
  EXPECT_EQ(events.all("tool.returned", "exit_code"), (Texts{"1"}));
  EXPECT_EQ(events.count("model.answered"), 2U);
  EXPECT_EQ(events.texts("message.added").back(), "Please always provide EXACTLY ONE action");
}

TEST(MiniSweAgent, AnswersOfTheResponsesApiHaveTheirItems) {
  const ImportedRun run = mini_run(
      R"({"info":{"exit_status":"","mini_version":"2"},"messages":[{"role":"user","content":"Do it"},
          {"object":"response","id":"resp_1","model":"m-5","output":[
             {"type":"reasoning","summary":[{"type":"summary_text","text":"I think"}]},
             {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Look","annotations":[]}]},
             {"type":"function_call","call_id":"c7","name":"bash","arguments":"{\"command\":\"ls\"}"}],
           "usage":{"input_tokens":50,"output_tokens":5,"input_tokens_details":{"cached_tokens":10},"output_tokens_details":{"reasoning_tokens":2}},
           "extra":{"actions":[{"command":"ls","tool_call_id":"c7"}],"cost":0.5}},
          {"type":"function_call_output","call_id":"c7","output":"seen","extra":{"returncode":0,"raw_output":"seen"}}]})");
  const RunEvents events(run);
  EXPECT_EQ(run.end.outcome, "unknown");
  EXPECT_EQ(events.texts("model.answered"), (Texts{"Look"}));
  EXPECT_EQ(events.texts("tool.returned"), (Texts{"seen"}));
  EXPECT_EQ(events.all("tool.returned", "call_id"), (Texts{"c7"}));
  EXPECT_EQ(
      events.all("model.answered", "usage")[0],
      R"({"input_tokens":50,"output_tokens":5,"cached_input_tokens":10,"reasoning_tokens":2,"cost":{"amount":0.5,"currency":"USD"}})");
  EXPECT_TRUE(events.hold(R"({"type":"reasoning","content":"I think"})"));
}

TEST(MiniSweAgent, AnAnswerThatWasRefusedIsCounted) {
  const ImportedRun run = mini_run(
      R"({"info":{"exit_status":"RepeatedFormatError","mini_version":"2"},"messages":[{"role":"user","content":"Do it"},
          {"role":"user","content":"Tool call error","extra":{"interrupt_type":"FormatError","cost":0.02,
            "response":{"model":"m","choices":[{"message":{"role":"assistant","content":"no call"}}],"usage":{"prompt_tokens":10,"completion_tokens":2}}}}]})");
  const RunEvents events(run);
  EXPECT_EQ(events.texts("model.answered"), (Texts{"no call"}));
  EXPECT_EQ(events.all("model.answered", "usage")[0],
            R"({"input_tokens":10,"output_tokens":2,"cost":{"amount":0.02,"currency":"USD"}})");
}

TEST(MiniSweAgent, TheGoldenTraceIsTheseEvents) {
  std::vector<ImportedRun> runs;
  runs.push_back(mini_run(golden_trace("mini-swe-agent.json")));
  expect_golden("mini-swe-agent", mini_swe_agent_format, runs);
}

TEST(SweAgentToday, TheGoldenTraceIsTheseEvents) {
  std::vector<ImportedRun> runs;
  runs.push_back(swe_agent_run(golden_trace("swe-agent.json")));
  expect_golden("swe-agent", swe_agent_format, runs);
}

}  // namespace
}  // namespace muniment::cli
