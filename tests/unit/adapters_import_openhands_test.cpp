// Tests of the importers of OpenHands events and tau2-bench results in their current formats: the inputs of
// ../shared/cases with their expected values, and small inputs for variants of the same formats.
#include "adapters/import/formats/formats.hpp"
#include "support/agent_traces.hpp"

namespace muniment::cli {
namespace {

// OpenHands.

ImportedRun openhands_events(const std::string& text) {
  const ParsedTrace source(text);
  EXPECT_TRUE(is_openhands_event(source.first()));
  EXPECT_FALSE(is_openhands(source.first()));
  auto run = translate_openhands_events(source.records());
  EXPECT_TRUE(run.ok()) << (run ? "" : run.error().message);
  return run ? std::move(*run) : ImportedRun();
}

void expect_server_run(const ImportedRun& run) {
  const RunEvents events(run);
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
  const ParsedTrace source(text_of_case("openhands-new/output.jsonl"));
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
  const RunEvents events(run);
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
      sdk_observation(
          "2",
          R"({"kind":"TerminalObservation","content":[{"type":"text","text":"late"}],"is_error":false,"exit_code":-1,"timeout":true})") +
      sdk_observation("1", R"({"kind":"TerminalObservation","content":[],"is_error":true,"exit_code":null})") +
      sdk_action("3", "r2", R"({"kind":"FinishAction","message":"All done."})"));
  const RunEvents events(run);
  EXPECT_EQ(events.count("model.answered"), 2U);
  EXPECT_EQ(events.all("tool.called", "requested_by"), (Texts{"model-0001", "model-0001", "model-0002"}));
  EXPECT_EQ(events.all("tool.returned", "call_id"), (Texts{"c2", "c1"}));
  EXPECT_EQ(events.all("tool.returned", "status"), (Texts{"timeout", "error"}));
  EXPECT_EQ(run.end.outcome, "success");
  EXPECT_EQ(run.end.summary, "All done.");
}

TEST(OpenHandsToday, TheEditorsOfTheSdkChangeFiles) {
  const auto changes = [](const std::string& observation) {
    const ImportedRun run =
        openhands_events(sdk_head + sdk_action("1", "r", R"({"kind":"FileEditorAction","command":"x","path":"/a"})") +
                         sdk_observation("1", observation));
    const RunEvents events(run);
    Texts found = events.all("file.changed", "path");
    for (const std::string& change : events.all("file.changed", "change")) found.push_back(change);
    return found;
  };
  const std::string head = R"({"content":[],"is_error":false,"path":"/a","command":)";
  EXPECT_EQ(changes(head + R"("create","prev_exist":false,"new_content":"x"})"), (Texts{"/a", "created"}));
  EXPECT_EQ(changes(head + R"("create","prev_exist":true,"old_content":"y","new_content":"x"})"),
            (Texts{"/a", "modified"}));
  EXPECT_EQ(changes(head + R"("str_replace","prev_exist":true,"old_content":"y","new_content":"x"})"),
            (Texts{"/a", "modified"}));
  EXPECT_EQ(changes(head + R"("str_replace","old_content":"x","new_content":"x"})"), Texts());
  EXPECT_EQ(changes(head + R"("view","new_content":"x"})"), Texts());
  EXPECT_EQ(changes(R"({"content":[],"is_error":true,"path":"/a","command":"create"})"), Texts());
  EXPECT_EQ(changes(R"({"content":[],"is_error":false,"file_path":"/w","is_new_file":true,"new_content":"x"})"),
            (Texts{"/w", "created"}));
  EXPECT_EQ(
      changes(
          R"({"content":[],"is_error":false,"commit":{"changes":{"/p":{"type":"add","new_content":"x"},"/q":{"type":"update","move_path":"/r"}}}})"),
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
  const RunEvents events(run);
  EXPECT_EQ(run.end.usage, R"({"input_tokens":15,"output_tokens":3,"cost":{"amount":0.75,"currency":"USD"}})");
  EXPECT_EQ(run.end.outcome, "failure");
  EXPECT_TRUE(events.hold("bad arguments"));
}

std::string server_events(const std::string& arguments, const std::string& observation) {
  return R"([{"id":1,"timestamp":"2026-05-01T09:00:01","source":"user","action":"message","args":{"content":"Do it"}},
    {"id":2,"timestamp":"2026-05-01T09:00:02","source":"agent","action":"edit","args":)" +
         arguments + R"(},{"id":3,"timestamp":"2026-05-01T09:00:03","source":"agent","cause":2,)" + observation + "}]";
}

TEST(OpenHandsToday, AnEditOfTheServerThatFailedIsNoChange) {
  const auto changes = [](const std::string& arguments, const std::string& observation) {
    const ImportedRun run = openhands_events(server_events(arguments, observation));
    const RunEvents events(run);
    Texts found = events.all("file.changed", "change");
    found.push_back(events.all("tool.returned", "status")[0]);
    return found;
  };
  const std::string extras = R"("extras":{"path":"/a","prev_exist":false,"old_content":"x","new_content":"y"})";
  EXPECT_EQ(
      changes(R"({"command":"str_replace","path":"/a"})", R"("observation":"edit","content":"The file",)" + extras),
      (Texts{"modified", "ok"}));
  EXPECT_EQ(
      changes(R"({"command":"create","path":"/a"})", R"("observation":"edit","content":"File created",)" + extras),
      (Texts{"created", "ok"}));
  EXPECT_EQ(changes(R"({"path":"/a","content":"y"})", R"("observation":"edit","content":"diff",)" + extras),
            (Texts{"created", "ok"}));
  EXPECT_EQ(
      changes(R"({"command":"str_replace"})", R"("observation":"edit","content":"ERROR:\nNo replacement",)" + extras),
      (Texts{"error"}));
  EXPECT_EQ(changes(R"({"command":"str_replace"})", R"("observation":"error","content":"no",)" + extras),
            (Texts{"error"}));
  EXPECT_EQ(changes(R"({})", R"("observation":"user_rejected","content":"no",)" + extras), (Texts{"denied"}));
  EXPECT_EQ(
      changes(
          R"({})",
          R"("observation":"run","content":"x","extras":{"metadata":{"exit_code":-1,"suffix":"\n[The command timed out after 9 seconds."}})"),
      (Texts{"timeout"}));
  EXPECT_EQ(changes(R"({})", R"("observation":"run","content":"x","extras":{"exit_code":3})"), (Texts{"error"}))
      << "as older versions write it";
}

TEST(OpenHandsToday, TheOlderHistoryIsPairsAndTheAnswerOfTheServerIsARecord) {
  const std::string action =
      R"({"id":1,"timestamp":"2026-05-01T09:00:01","source":"agent","action":"run","args":{"command":"ls","thought":"I look."}})";
  const std::string observation =
      R"({"id":2,"timestamp":"2026-05-01T09:00:02","source":"agent","cause":1,"observation":"run","content":"a","extras":{"metadata":{"exit_code":0}}})";
  for (const std::string& text : {R"({"instance_id":"i","instruction":"Do it","history":[[)" + action + "," +
                                      observation + R"(]],"test_result":{"report":{"resolved":true}}})",
                                  R"({"trajectory":[)" + action + "," + observation + "]}"}) {
    const ParsedTrace source(text);
    ASSERT_TRUE(is_openhands(source.first())) << text;
    EXPECT_FALSE(is_swe_agent(source.first())) << text;
    const auto run = translate_openhands(source.first());
    ASSERT_TRUE(run.ok());
    const RunEvents events(*run);
    EXPECT_EQ(events.texts("model.answered"), (Texts{"I look."}));
    EXPECT_EQ(events.all("tool.returned", "exit_code"), (Texts{"0"}));
    EXPECT_EQ(run->end.outcome, text.starts_with("{\"instance_id") ? "success" : "unknown");
  }
}

TEST(OpenHandsToday, AnEvaluationThatFailedHasItsGoalAndError) {
  const ParsedTrace source(
      R"({"instance_id":"i","instruction":"Do it","history":null,"metadata":{"agent_class":"CodeActAgent"},"test_result":{},"error":"No container"})");
  ASSERT_TRUE(is_openhands(source.first()));
  const auto run = translate_openhands(source.first());
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->goal, "Do it");
  EXPECT_EQ(run->end.outcome, "failure");
  EXPECT_EQ(run->end.summary, "No container");
}

// tau2-bench.

TEST(Tau2, EachSimulationIsARun) {
  REQUIRE_CASE("tau2");
  const ParsedTrace source(text_of_case("tau2/results.json"));
  ASSERT_TRUE(is_tau2(source.first()));
  const auto runs = translate_tau2(source.first());
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 1U);
  const ImportedRun& run = runs->front();
  const RunEvents events(run);
  EXPECT_EQ(run.goal, "Cancel booking AB12");
  EXPECT_EQ(run.external_id, "s-1");
  EXPECT_EQ(label(run, "task_id"), "3");
  EXPECT_EQ(label(run, "trial"), "0");
  EXPECT_EQ(label(run, "reward"), "1.0");
  EXPECT_EQ(run.end.outcome, "success");
  EXPECT_EQ(run.end.summary, "reward 1.0, user_stop");
  EXPECT_EQ(events.times("model.answered"),
            (Texts{"2026-05-01T09:00:01Z", "2026-05-01T09:00:03Z", "2026-05-01T09:00:05Z"}));
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
  const ParsedTrace source(tau2_results);
  const auto runs = translate_tau2(source.first());
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 2U);
  const RunEvents events((*runs)[0]);
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
  const RunEvents second((*runs)[1]);
  EXPECT_FALSE(second.hold("unused words")) << "once is enough";
}

TEST(Tau2, AFileOfOneSimulationIsARunAndAnIndexSaysWhereTheyAre) {
  const ParsedTrace one(
      R"({"id":"9","task_id":"a","termination_reason":"user_stop","reward_info":{"reward":1.0},"messages":[{"role":"user","content":"Cancel it"}]})");
  ASSERT_TRUE(is_tau2(one.first()));
  const auto runs = translate_tau2(one.first());
  ASSERT_TRUE(runs.ok());
  EXPECT_EQ(runs->front().goal, "Cancel it");
  const ParsedTrace index(R"({"tasks":[],"simulations":[],"simulation_index":[{"id":"9","task_id":"a","trial":0}]})");
  const auto refused = translate_tau2(index.first());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("simulations/"), std::string::npos) << refused.error().message;
}

TEST(Tau2, AVoiceSimulationHasTheWordsOfItsTicks) {
  const ParsedTrace source(
      R"({"id":"v","task_id":"a","termination_reason":"user_stop","ticks":[
          {"tick_id":0,"timestamp":"2026-05-01T09:00:00","user_chunk":{"role":"user","content":"Hello"}},
          {"tick_id":1,"timestamp":"2026-05-01T09:00:01","agent_chunk":{"role":"assistant","content":"Hi"},"agent_tool_calls":[{"id":"c","name":"f","arguments":{}}],"agent_tool_results":[{"id":"c","role":"tool","content":"done"}]},
          {"tick_id":2,"timestamp":"2026-05-01T09:00:02"}]})");
  const auto runs = translate_tau2(source.first());
  ASSERT_TRUE(runs.ok());
  const RunEvents events(runs->front());
  EXPECT_EQ(events.texts("message.added"), (Texts{"Hello"}));
  EXPECT_EQ(events.texts("model.answered"), (Texts{"Hi"}));
  EXPECT_EQ(events.texts("tool.returned"), (Texts{"done"}));
}

TEST(TauBench, ANulOrALoneSurrogateCostsNoRecord) {
  REQUIRE_CASE("nul-in-traces");
  const ParsedTrace source(text_of_case("nul-in-traces/tau.json"));
  ASSERT_EQ(source.records().size(), 3U);
  Texts results;
  for (const json::Value& record : source.records()) {
    const auto run = translate_tau_bench(record);
    ASSERT_TRUE(run.ok());
    const RunEvents events(*run);
    results.push_back(events.texts("tool.returned")[0]);
  }
  EXPECT_EQ(results, (Texts{"plain",
                            "bin\xef\xbf\xbd"
                            "ary",
                            "cut \xef\xbf\xbd"}));
}

TEST(OpenHandsToday, TheGoldenEventsAreTheseEvents) {
  for (const char* name : {"openhands-events.json", "openhands-sdk.jsonl"}) {
    std::vector<ImportedRun> runs;
    runs.push_back(openhands_events(golden_trace(name)));
    expect_golden(std::filesystem::path(name).stem(), openhands_format, runs);
  }
}

TEST(Tau2, TheGoldenResultsAreTheseEvents) {
  const ParsedTrace source(golden_trace("tau2.json"));
  expect_golden("tau2", tau2_format, *translate_tau2(source.first()));
}

}  // namespace
}  // namespace muniment::cli
