// Trajectories in the forms that agents write today: the inputs of ../shared/cases with their right values, and small
// inputs for variants of the same formats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "cli/import/events.hpp"
#include "cli/import/formats/mini_swe_agent.hpp"
#include "cli/import/formats/openhands.hpp"
#include "cli/import/formats/swe_agent.hpp"
#include "cli/import/formats/swe_agent_action.hpp"
#include "cli/import/formats/tau2.hpp"
#include "cli/import/formats/tau_bench.hpp"
#include "cli/import/readable_text.hpp"
#include "support/imported.hpp"

namespace muniment::cli {
namespace {

// A file of the cases, parsed; a list or lines of JSON are several records.
class Source {
 public:
  explicit Source(std::string text) : text_(with_readable_characters(text).text) {
    if (auto whole = json::parse(std::string_view(text_))) {
      documents_.push_back(std::move(*whole));
    } else {
      std::string_view rest(text_);
      while (const auto line = take_line(rest)) {
        if (!line->empty()) documents_.push_back(*json::parse(*line));
      }
      if (!rest.empty()) documents_.push_back(*json::parse(rest));
    }
    for (const json::Document& document : documents_) {
      const json::Value root = document.root();
      if (!root.is(json::Kind::array)) records_.push_back(root);
      if (root.is(json::Kind::array)) {
        for (const json::Value record : root) records_.push_back(record);
      }
    }
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::vector<json::Value>& records() const { return records_; }
  json::Value first() const { return records_.front(); }

 private:
  const std::string text_;
  std::vector<json::Document> documents_;
  std::vector<json::Value> records_;
};

std::filesystem::path case_file(const std::string& name) {
  const char* shared = std::getenv("MUNIMENT_SHARED");
  return std::filesystem::path(shared == nullptr ? "../shared" : shared) / "cases" / name;
}

std::string text_of_case(const std::string& name) {
  std::ifstream file(case_file(name), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// One line for each event: its type and the members that a test is about.
struct Events {
  explicit Events(const ImportedRun& run) {
    std::set<std::string> kinds;
    for (const ImportedEvent& event : run.events) {
      EXPECT_TRUE(kinds.insert(event.kind).second) << "two events have the id of " << event.kind;
      expect_fits(event);
      bodies.push_back(event.body);
      events.push_back(&event);
    }
  }

  std::size_t count(std::string_view type) const {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(), [&](const ImportedEvent* event) { return event->type == type; }));
  }

  // A member of each event of a type: its text, or the JSON of any other value; "-" if it is absent.
  std::vector<std::string> all(std::string_view type, std::string_view name) const {
    std::vector<std::string> found;
    for (const ImportedEvent* event : events) {
      if (event->type != type) continue;
      const auto document = json::parse(std::string_view(event->body));
      const json::Value value = document->root()[name];
      found.push_back(!value ? "-" : value.string_or(value.source()));
    }
    return found;
  }

  // The texts of the content of each event of a type.
  std::vector<std::string> texts(std::string_view type) const {
    std::vector<std::string> found;
    for (const ImportedEvent* event : events) {
      if (event->type != type) continue;
      const auto document = json::parse(std::string_view(event->body));
      std::string text;
      for (const json::Value part : document->root()["content"]) {
        if (part["type"].string_or("") == "text") text += part["content"].string_or("");
      }
      found.push_back(std::move(text));
    }
    return found;
  }

  std::vector<std::string> times(std::string_view type) const {
    std::vector<std::string> found;
    for (const ImportedEvent* event : events) {
      if (event->type == type) found.push_back(event->occurred_at);
    }
    return found;
  }

  bool hold(std::string_view text) const {
    return std::any_of(bodies.begin(), bodies.end(),
                       [&](const std::string& body) { return body.find(text) != std::string::npos; });
  }

  std::vector<const ImportedEvent*> events;
  std::vector<std::string> bodies;
};

using Texts = std::vector<std::string>;

std::string label(const ImportedRun& run, std::string_view name) {
  for (const auto& [key, value] : run.labels) {
    if (key == name) return value;
  }
  return {};
}

#define REQUIRE_CASE(name) \
  if (!std::filesystem::exists(case_file(name))) GTEST_SKIP() << "no cases at " << case_file(name)

// SWE-agent ----------------------------------------------------------------------------------------

ImportedRun swe_agent_run(const std::string& text) {
  const Source source(text);
  EXPECT_TRUE(is_swe_agent(source.first()));
  auto runs = translate_swe_agent(source.first());
  EXPECT_TRUE(runs.ok() && runs->size() == 1) << (runs ? "" : runs.error().message);
  return runs ? std::move(runs->front()) : ImportedRun();
}

TEST(SweAgentToday, ARunOfVersion1HasItsGoalTextsEditsDurationsAndModel) {
  REQUIRE_CASE("swe-agent-1x");
  const ImportedRun run = swe_agent_run(text_of_case("swe-agent-1x/one.traj"));
  const Events events(run);
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
  const Events events(run);
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
  const Events events(run);
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
    const Events events(run);
    Texts found = events.all("file.changed", "change");
    found.push_back(events.all("tool.returned", "status")[0]);
    return found;
  };
  const std::string editor = "str_replace_editor";
  EXPECT_EQ(changes(editor, "view", "Here's the result of running `cat -n` on /a b.py:\n     1\tx"), (Texts{"ok"}));
  EXPECT_EQ(changes(editor, "create", "File already exists at: /a b.py. Cannot overwrite files"), (Texts{"error"}));
  EXPECT_EQ(changes(editor, "create", "File created successfully at: /a b.py"), (Texts{"created", "ok"}));
  EXPECT_EQ(changes(editor, "str_replace", "No replacement was performed, old_str `x` did not appear"), (Texts{"error"}));
  EXPECT_EQ(changes(editor, "insert", "The file /a b.py has been edited. Here's the result"), (Texts{"modified", "ok"}));
  EXPECT_EQ(changes(editor, "undo_edit", "Last edit to /a b.py undone successfully. Here's"), (Texts{"modified", "ok"}));
  EXPECT_EQ(changes(editor, "str_replace", "The path /a b.py does not exist."), (Texts{"error"}));
  EXPECT_EQ(changes("edit", "x", "Text replaced. Please review\n[File: /a b.py (1 lines total)]"), (Texts{"modified", "ok"}));
  EXPECT_EQ(changes("edit", "x", "Your edit was not applied (file not modified): Text"), (Texts{"error"}));
  EXPECT_EQ(changes("bash", "x", "The command 'sleep' was cancelled because it took more than 30 seconds."), (Texts{"timeout"}));
  EXPECT_EQ(changes("bash", "x", "File created successfully at: /a b.py"), (Texts{"unknown"})) << "printed by a command";
}

TEST(SweAgentToday, AnObservationThatIsNoTextIsKept) {
  for (const char* observation : {"null", "7", R"([{"type":"text","text":"seen"}])", R"({"a":"kept"})"}) {
    const ImportedRun run = swe_agent_run(swe_agent_turn("bash", "{}", observation));
    const Events events(run);
    EXPECT_EQ(events.count("tool.returned"), 1U) << observation;
    EXPECT_TRUE(std::string_view(observation).find("kept") == std::string_view::npos || events.hold("kept"));
  }
}

TEST(SweAgentToday, AQueryThatRepeatsTheHistoryIsNotKeptTwice) {
  const ImportedRun run = swe_agent_run(
      R"({"trajectory":[{"action":"ls","response":"r","observation":"o","query":[{"role":"user","content":"the task"},{"role":"user","content":"only here"}]}],
          "history":[{"role":"user","content":"the task"},{"role":"assistant","content":"r"}],"info":{}})");
  const Events events(run);
  EXPECT_TRUE(events.hold("only here"));
  EXPECT_EQ(std::count_if(events.bodies.begin(), events.bodies.end(),
                          [](const std::string& body) { return body.find("the task") != std::string::npos; }),
            1);
}

TEST(SweAgentToday, EachAttemptIsARun) {
  const std::string attempt =
      R"({"trajectory":[{"action":"ls","response":"r","observation":"o"}],"history":[{"role":"user","content":"t"}],"info":{"exit_status":"exit_cost"}})";
  const Source all(R"({"attempts":[)" + attempt + "," + attempt + "]}");
  ASSERT_TRUE(is_swe_agent(all.first()));
  EXPECT_EQ(translate_swe_agent(all.first())->size(), 2U);
  const Source chosen(R"({"attempts":[)" + attempt + "," + attempt +
                      R"(],"trajectory":[{"action":"ls","response":"r"}],"history":[],"info":{"exit_status":"submitted","best_attempt_idx":1}})");
  const auto runs = translate_swe_agent(chosen.first());
  ASSERT_EQ(runs->size(), 2U);
  EXPECT_EQ((*runs)[0].end.outcome, "success");
  EXPECT_EQ(label((*runs)[1], "attempt"), "0");
  EXPECT_EQ((*runs)[1].end.outcome, "failure");
}

// mini-swe-agent -----------------------------------------------------------------------------------

ImportedRun mini_run(const std::string& text) {
  const Source source(text);
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
  const Events events(run);
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
  EXPECT_EQ(events.all("model.answered", "usage")[0],
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
  const Events events(run);
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
  const Events events(run);
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
  const Events events(run);
  EXPECT_EQ(events.texts("model.answered"), (Texts{"no call"}));
  EXPECT_EQ(events.all("model.answered", "usage")[0],
            R"({"input_tokens":10,"output_tokens":2,"cost":{"amount":0.02,"currency":"USD"}})");
}

// OpenHands ----------------------------------------------------------------------------------------

ImportedRun openhands_events(const std::string& text) {
  const Source source(text);
  EXPECT_TRUE(is_openhands_event(source.first()));
  EXPECT_FALSE(is_openhands(source.first()));
  auto run = translate_openhands_events(source.records());
  EXPECT_TRUE(run.ok()) << (run ? "" : run.error().message);
  return run ? std::move(*run) : ImportedRun();
}

void expect_server_run(const ImportedRun& run) {
  const Events events(run);
  EXPECT_EQ(run.goal, "Fix the rounding.");
  EXPECT_EQ(run.end.outcome, "success");
  EXPECT_EQ(run.end.summary, "Rounded.");
  EXPECT_EQ(events.all("tool.called", "name"), (Texts{"execute_bash", "str_replace_editor", "finish"}));
  EXPECT_EQ(events.all("tool.called", "kind"), (Texts{"command", "function", "function"}));
  EXPECT_EQ(events.all("tool.returned", "exit_code"), (Texts{"0", "-"}));
  EXPECT_EQ(events.all("tool.returned", "status"), (Texts{"ok", "ok"}));
  EXPECT_EQ(events.all("file.changed", "path"), (Texts{"/workspace/src/d.py"}));
  EXPECT_EQ(events.all("file.changed", "change"), (Texts{"modified"}));
  EXPECT_EQ(events.all("model.answered", "usage"),
            (Texts{R"({"input_tokens":100,"output_tokens":10})", R"({"input_tokens":100,"output_tokens":10})", "-"}));
  EXPECT_EQ(events.all("model.answered", "model")[0], "m-1");
  EXPECT_EQ(events.times("tool.called")[0], "2026-05-01T09:00:02.000001Z");
  EXPECT_EQ(events.texts("message.added"), (Texts{"You are OpenHands agent.", "Fix the rounding."}));
}

TEST(OpenHandsToday, TheExportOfTheUiIsARun) {
  REQUIRE_CASE("openhands-new");
  const ImportedRun run = openhands_events(text_of_case("openhands-new/exported-trajectory.json"));
  expect_server_run(run);
  EXPECT_EQ(run.end.usage, R"({"input_tokens":200,"output_tokens":20,"cost":{"amount":0.01,"currency":"USD"}})");
}

TEST(OpenHandsToday, ARecordOfTheEvaluationIsARun) {
  REQUIRE_CASE("openhands-new");
  const Source source(text_of_case("openhands-new/output.jsonl"));
  ASSERT_TRUE(is_openhands(source.first()));
  const auto run = translate_openhands(source.first());
  ASSERT_TRUE(run.ok());
  expect_server_run(*run);
  EXPECT_EQ(run->external_id, "demo__demo-1");
  EXPECT_EQ(run->submission, "diff --git a/src/d.py b/src/d.py\n");
  EXPECT_EQ(run->end.usage, R"({"input_tokens":200,"output_tokens":20,"cost":{"amount":0.03,"currency":"USD"}})");
}

TEST(OpenHandsToday, TheEventsOfTheSdkAreARun) {
  REQUIRE_CASE("openhands-new");
  const ImportedRun run = openhands_events(text_of_case("openhands-new/v1-events.jsonl"));
  const Events events(run);
  EXPECT_EQ(run.goal, "Fix the rounding.");
  EXPECT_EQ(events.all("tool.called", "name"), (Texts{"terminal"}));
  EXPECT_EQ(events.all("tool.called", "arguments"), (Texts{R"({"command":"ls"})"}));
  EXPECT_EQ(events.all("tool.returned", "exit_code"), (Texts{"0"}));
  EXPECT_EQ(events.texts("tool.returned"), (Texts{"src"}));
  EXPECT_EQ(events.texts("model.answered"), (Texts{"I look.", "Rounded."}));
  EXPECT_TRUE(events.hold(R"({"type":"reasoning","content":"hm"})"));
  EXPECT_EQ(run.end.outcome, "unknown") << "it does not say how it ended";
}

constexpr const char* sdk_head =
    R"({"kind":"MessageEvent","id":"e1","timestamp":"2026-05-01T09:00:01","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Do it","cache_prompt":false}]}})"
    "\n";

std::string sdk_action(const std::string& id, const std::string& response, const std::string& action) {
  return R"({"kind":"ActionEvent","id":")" + id +
         R"(","timestamp":"2026-05-01T09:00:02","source":"agent","thought":[],"tool_name":"t","tool_call_id":"c)" + id +
         R"(","tool_call":{"id":"c)" + id + R"(","name":"t","arguments":"{}"},"llm_response_id":")" + response +
         R"(","action":)" + action + "}\n";
}

std::string sdk_observation(const std::string& id, const std::string& observation) {
  return R"({"kind":"ObservationEvent","id":"o)" + id +
         R"(","timestamp":"2026-05-01T09:00:03","source":"environment","tool_name":"t","tool_call_id":"c)" + id +
         R"(","action_id":")" + id + R"(","observation":)" + observation + "}\n";
}

TEST(OpenHandsToday, OneAnswerOfTheSdkAsksForSeveralCalls) {
  const ImportedRun run = openhands_events(
      sdk_head + sdk_action("1", "r", R"({"kind":"TerminalAction","command":"a"})") +
      sdk_action("2", "r", R"({"kind":"TerminalAction","command":"b"})") +
      sdk_observation("2", R"({"kind":"TerminalObservation","content":[{"type":"text","text":"late"}],"is_error":false,"exit_code":-1,"timeout":true})") +
      sdk_observation("1", R"({"kind":"TerminalObservation","content":[],"is_error":true,"exit_code":null})") +
      sdk_action("3", "r2", R"({"kind":"FinishAction","message":"All done."})"));
  const Events events(run);
  EXPECT_EQ(events.count("model.answered"), 2U);
  EXPECT_EQ(events.all("tool.called", "requested_by"), (Texts{"model-0001", "model-0001", "model-0002"}));
  EXPECT_EQ(events.all("tool.returned", "call_id"), (Texts{"c2", "c1"}));
  EXPECT_EQ(events.all("tool.returned", "status"), (Texts{"timeout", "error"}));
  EXPECT_EQ(run.end.outcome, "success");
  EXPECT_EQ(run.end.summary, "All done.");
}

TEST(OpenHandsToday, TheEditorsOfTheSdkChangeFiles) {
  const auto changes = [](const std::string& observation) {
    const ImportedRun run = openhands_events(
        sdk_head + sdk_action("1", "r", R"({"kind":"FileEditorAction","command":"x","path":"/a"})") + sdk_observation("1", observation));
    const Events events(run);
    Texts found = events.all("file.changed", "path");
    for (const std::string& change : events.all("file.changed", "change")) found.push_back(change);
    return found;
  };
  const std::string head = R"({"content":[],"is_error":false,"path":"/a","command":)";
  EXPECT_EQ(changes(head + R"("create","prev_exist":false,"new_content":"x"})"), (Texts{"/a", "created"}));
  EXPECT_EQ(changes(head + R"("create","prev_exist":true,"old_content":"y","new_content":"x"})"), (Texts{"/a", "modified"}));
  EXPECT_EQ(changes(head + R"("str_replace","prev_exist":true,"old_content":"y","new_content":"x"})"), (Texts{"/a", "modified"}));
  EXPECT_EQ(changes(head + R"("str_replace","old_content":"x","new_content":"x"})"), Texts());
  EXPECT_EQ(changes(head + R"("view","new_content":"x"})"), Texts());
  EXPECT_EQ(changes(R"({"content":[],"is_error":true,"path":"/a","command":"create"})"), Texts());
  EXPECT_EQ(changes(R"({"content":[],"is_error":false,"file_path":"/w","is_new_file":true,"new_content":"x"})"), (Texts{"/w", "created"}));
  EXPECT_EQ(changes(R"({"content":[],"is_error":false,"commit":{"changes":{"/p":{"type":"add","new_content":"x"},"/q":{"type":"update","move_path":"/r"}}}})"),
            (Texts{"/p", "/r", "created", "renamed"}));
}

TEST(OpenHandsToday, TheStateOfTheSdkHasUsageAndOutcome) {
  const ImportedRun run = openhands_events(
      std::string(sdk_head) +
      R"({"kind":"ConversationStateUpdateEvent","id":"s1","timestamp":"2026-05-01T09:00:02","source":"environment","key":"stats","value":{"usage_to_metrics":{"default":{"model_name":"m","accumulated_cost":0.5,"accumulated_token_usage":{"prompt_tokens":10,"completion_tokens":2}},"condenser":{"model_name":"c","accumulated_cost":0.25,"accumulated_token_usage":{"prompt_tokens":5,"completion_tokens":1}}}}})"
      "\n"
      R"({"kind":"AgentErrorEvent","id":"x1","timestamp":"2026-05-01T09:00:03","source":"agent","tool_name":"t","tool_call_id":"c9","error":"bad arguments"})"
      "\n"
      R"({"kind":"ConversationStateUpdateEvent","id":"s2","timestamp":"2026-05-01T09:00:04","source":"environment","key":"execution_status","value":"error"})"
      "\n");
  const Events events(run);
  EXPECT_EQ(run.end.usage, R"({"input_tokens":15,"output_tokens":3,"cost":{"amount":0.75,"currency":"USD"}})");
  EXPECT_EQ(run.end.outcome, "failure");
  EXPECT_TRUE(events.hold("bad arguments"));
}

std::string server_events(const std::string& arguments, const std::string& observation) {
  return R"([{"id":1,"timestamp":"2026-05-01T09:00:01","source":"user","action":"message","args":{"content":"Do it"}},
    {"id":2,"timestamp":"2026-05-01T09:00:02","source":"agent","action":"edit","args":)" + arguments +
         R"(},{"id":3,"timestamp":"2026-05-01T09:00:03","source":"agent","cause":2,)" + observation + "}]";
}

TEST(OpenHandsToday, AnEditOfTheServerThatFailedIsNoChange) {
  const auto changes = [](const std::string& arguments, const std::string& observation) {
    const ImportedRun run = openhands_events(server_events(arguments, observation));
    const Events events(run);
    Texts found = events.all("file.changed", "change");
    found.push_back(events.all("tool.returned", "status")[0]);
    return found;
  };
  const std::string extras = R"("extras":{"path":"/a","prev_exist":false,"old_content":"x","new_content":"y"})";
  EXPECT_EQ(changes(R"({"command":"str_replace","path":"/a"})", R"("observation":"edit","content":"The file",)" + extras), (Texts{"modified", "ok"}));
  EXPECT_EQ(changes(R"({"command":"create","path":"/a"})", R"("observation":"edit","content":"File created",)" + extras), (Texts{"created", "ok"}));
  EXPECT_EQ(changes(R"({"path":"/a","content":"y"})", R"("observation":"edit","content":"diff",)" + extras), (Texts{"created", "ok"}));
  EXPECT_EQ(changes(R"({"command":"str_replace"})", R"("observation":"edit","content":"ERROR:\nNo replacement",)" + extras), (Texts{"error"}));
  EXPECT_EQ(changes(R"({"command":"str_replace"})", R"("observation":"error","content":"no",)" + extras), (Texts{"error"}));
  EXPECT_EQ(changes(R"({})", R"("observation":"user_rejected","content":"no",)" + extras), (Texts{"denied"}));
  EXPECT_EQ(changes(R"({})", R"("observation":"run","content":"x","extras":{"metadata":{"exit_code":-1,"suffix":"\n[The command timed out after 9 seconds."}})"), (Texts{"timeout"}));
  EXPECT_EQ(changes(R"({})", R"("observation":"run","content":"x","extras":{"exit_code":3})"), (Texts{"error"})) << "as older versions write it";
}

TEST(OpenHandsToday, TheOlderHistoryIsPairsAndTheAnswerOfTheServerIsARecord) {
  const std::string action = R"({"id":1,"timestamp":"2026-05-01T09:00:01","source":"agent","action":"run","args":{"command":"ls","thought":"I look."}})";
  const std::string observation = R"({"id":2,"timestamp":"2026-05-01T09:00:02","source":"agent","cause":1,"observation":"run","content":"a","extras":{"metadata":{"exit_code":0}}})";
  for (const std::string& text : {R"({"instance_id":"i","instruction":"Do it","history":[[)" + action + "," + observation + R"(]],"test_result":{"report":{"resolved":true}}})",
                                  R"({"trajectory":[)" + action + "," + observation + "]}"}) {
    const Source source(text);
    ASSERT_TRUE(is_openhands(source.first())) << text;
    EXPECT_FALSE(is_swe_agent(source.first())) << text;
    const auto run = translate_openhands(source.first());
    ASSERT_TRUE(run.ok());
    const Events events(*run);
    EXPECT_EQ(events.texts("model.answered"), (Texts{"I look."}));
    EXPECT_EQ(events.all("tool.returned", "exit_code"), (Texts{"0"}));
    EXPECT_EQ(run->end.outcome, text.starts_with("{\"instance_id") ? "success" : "unknown");
  }
}

// tau2-bench ---------------------------------------------------------------------------------------

TEST(Tau2, EachSimulationIsARun) {
  REQUIRE_CASE("tau2");
  const Source source(text_of_case("tau2/results.json"));
  ASSERT_TRUE(is_tau2(source.first()));
  const auto runs = translate_tau2(source.first());
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 1U);
  const ImportedRun& run = runs->front();
  const Events events(run);
  EXPECT_EQ(run.goal, "Cancel booking AB12");
  EXPECT_EQ(run.external_id, "s-1");
  EXPECT_EQ(label(run, "task_id"), "3");
  EXPECT_EQ(label(run, "trial"), "0");
  EXPECT_EQ(label(run, "reward"), "1.0");
  EXPECT_EQ(run.end.outcome, "success");
  EXPECT_EQ(run.end.summary, "reward 1.0, user_stop");
  EXPECT_EQ(events.times("model.answered"), (Texts{"2026-05-01T09:00:01Z", "2026-05-01T09:00:03Z", "2026-05-01T09:00:05Z"}));
  EXPECT_EQ(events.all("model.answered", "usage"),
            (Texts{"-", R"({"input_tokens":200,"output_tokens":8,"cost":{"amount":0.002,"currency":"USD"}})",
                   R"({"input_tokens":220,"output_tokens":5,"cost":{"amount":0.002,"currency":"USD"}})"}));
  EXPECT_EQ(events.all("model.answered", "model"), (Texts(3, "m-1")));
  EXPECT_EQ(events.all("tool.called", "name"), (Texts{"cancel_booking"}));
  EXPECT_EQ(events.all("tool.returned", "call_id"), (Texts{"c1"}));
  EXPECT_EQ(events.all("tool.returned", "status"), (Texts{"ok"}));
  EXPECT_EQ(events.texts("message.added"), (Texts{"Cancel my booking AB12.", "###STOP###"}));
  EXPECT_TRUE(events.hold(R"("prompt_tokens":)")) << "what the simulated user used is kept with its message";
}

constexpr const char* tau2_results = R"({"info":{"agent_info":{"llm":"m"},"environment_info":{"domain_name":"telecom"}},
  "tasks":[{"id":"a","user_scenario":{"persona":null,"instructions":"Be short."}},{"id":"never","user_scenario":{"instructions":"unused words"}}],
  "simulations":[
   {"id":"1","task_id":"a","trial":0,"termination_reason":"max_steps","reward_info":{"reward":0.0},"messages":[
     {"role":"user","content":null,"tool_calls":[{"id":"u1","name":"toggle","arguments":{"x":1},"requestor":"user"}],"timestamp":"2026-05-01T09:00:01.5"},
     {"role":"tool","id":"u1","content":"no signal","requestor":"user","error":true},
     {"role":"assistant","content":"Both.","tool_calls":[{"id":"c1","name":"f","arguments":{}},{"id":"c2","name":"g","arguments":{}}],"generation_time_seconds":1.5},
     {"role":"tool","tool_messages":[{"role":"tool","id":"c2","content":"two","error":false},{"role":"tool","id":"c1","content":"one","error":false}]},
     7]},
   {"id":"2","task_id":"a","trial":1,"termination_reason":"agent_error","reward_info":null,"messages":[]}]})";

TEST(Tau2, TheUsersCallsAndSeveralResultsInOneMessageAreTheirs) {
  const Source source(tau2_results);
  const auto runs = translate_tau2(source.first());
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 2U);
  const Events events((*runs)[0]);
  EXPECT_EQ((*runs)[0].goal, "Be short.");
  EXPECT_EQ((*runs)[0].end.outcome, "failure");
  EXPECT_EQ(label((*runs)[0], "domain"), "telecom");
  EXPECT_EQ(events.all("tool.called", "requested_by"), (Texts{"-", "model-0001", "model-0001"}));
  EXPECT_EQ(events.all("tool.returned", "call_id"), (Texts{"u1", "c2", "c1"}));
  EXPECT_EQ(events.all("tool.returned", "status"), (Texts{"error", "ok", "ok"}));
  EXPECT_EQ(events.all("model.answered", "duration_us"), (Texts{"1500000"}));
  EXPECT_EQ(events.times("message.added")[0], "2026-05-01T09:00:01.5Z");
  EXPECT_TRUE(events.hold("unused words")) << "a task without a simulation";
  EXPECT_EQ((*runs)[1].end.outcome, "unknown");
  const Events second((*runs)[1]);
  EXPECT_FALSE(second.hold("unused words")) << "once is enough";
}

TEST(Tau2, AFileOfOneSimulationIsARunAndAnIndexSaysWhereTheyAre) {
  const Source one(
      R"({"id":"9","task_id":"a","termination_reason":"user_stop","reward_info":{"reward":1.0},"messages":[{"role":"user","content":"Cancel it"}]})");
  ASSERT_TRUE(is_tau2(one.first()));
  const auto runs = translate_tau2(one.first());
  ASSERT_TRUE(runs.ok());
  EXPECT_EQ(runs->front().goal, "Cancel it");
  const Source index(R"({"tasks":[],"simulations":[],"simulation_index":[{"id":"9","task_id":"a","trial":0}]})");
  const auto refused = translate_tau2(index.first());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("simulations/"), std::string::npos) << refused.error().message;
}

TEST(Tau2, AVoiceSimulationHasTheWordsOfItsTicks) {
  const Source source(
      R"({"id":"v","task_id":"a","termination_reason":"user_stop","ticks":[
          {"tick_id":0,"timestamp":"2026-05-01T09:00:00","user_chunk":{"role":"user","content":"Hello"}},
          {"tick_id":1,"timestamp":"2026-05-01T09:00:01","agent_chunk":{"role":"assistant","content":"Hi"},"agent_tool_calls":[{"id":"c","name":"f","arguments":{}}],"agent_tool_results":[{"id":"c","role":"tool","content":"done"}]},
          {"tick_id":2,"timestamp":"2026-05-01T09:00:02"}]})");
  const auto runs = translate_tau2(source.first());
  ASSERT_TRUE(runs.ok());
  const Events events(runs->front());
  EXPECT_EQ(events.texts("message.added"), (Texts{"Hello"}));
  EXPECT_EQ(events.texts("model.answered"), (Texts{"Hi"}));
  EXPECT_EQ(events.texts("tool.returned"), (Texts{"done"}));
}

TEST(TauBench, ANulOrALoneSurrogateCostsNoRecord) {
  REQUIRE_CASE("nul-in-traces");
  const Source source(text_of_case("nul-in-traces/tau.json"));
  ASSERT_EQ(source.records().size(), 3U);
  Texts results;
  for (const json::Value& record : source.records()) {
    const auto run = translate_tau_bench(record);
    ASSERT_TRUE(run.ok());
    const Events events(*run);
    results.push_back(events.texts("tool.returned")[0]);
  }
  EXPECT_EQ(results, (Texts{"plain", "bin\xef\xbf\xbd" "ary", "cut \xef\xbf\xbd"}));
}

}  // namespace
}  // namespace muniment::cli
