// Tests of tools/call: the native request of each call, and its result.
#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "unit/mcp_fixture.hpp"

namespace muniment::mcp {
namespace {

using namespace std::chrono_literals;

// A session whose run is "r1"; the requests that record it are answered at once.
struct WithRun : Host {
  explicit WithRun(bool stateless = false) : Host({.stateless = stateless, .record = true, .run_id = "r1"}) {
    native.at_once = {{"run.start", "{}"}};
    if (!stateless) open();
  }
  // Returns the params of the tool's request; skips requests that record the session's run.
  Json tool_params(std::string_view method) const {
    for (const auto& request : native.requests) {
      const bool of_session = request.params["type"].string_or("").starts_with("tool.");
      if (request.method == method && !of_session) return request.params;
    }
    ADD_FAILURE() << "no " << method;
    return {};
  }
};

TEST(McpToolCall, TheSessionsRunIsFilledInWhereTheMethodTakesARun) {
  const std::pair<const char*, const char*> tools[] = {{"retrieve_evidence", "evidence.retrieve"},
                                                       {"render_with_pointers", "pointer.render"},
                                                       {"resolve_pointer", "pointer.resolve"},
                                                       {"build_context", "context.build"},
                                                       {"run_end", "run.end"},
                                                       {"record_event", "event.append"},
                                                       {"record_claim", "claim.record"},
                                                       {"rehydrate", "run.rehydrate"}};
  for (const bool stateless : {false, true}) {
    for (const auto& [tool, method] : tools) {
      WithRun host(stateless);
      host.call_tool(tool, R"({"x_own":1,"queries":[]})");
      EXPECT_EQ(host.tool_params(method)["run_id"].string_or(""), "r1") << tool;
      EXPECT_EQ(host.tool_params(method)["x_own"].as_int(), 1) << tool;
    }
  }
}

TEST(McpToolCall, ARunThatIsNamedIsKept) {
  for (const char* tool : {"resolve_pointer", "record_event"}) {
    WithRun host;
    host.call_tool(tool, R"({"run_id":"other","_meta":{"x":1}})");
    const Json params = host.tool_params(tool == std::string("record_event") ? "event.append" : "pointer.resolve");
    EXPECT_EQ(params["run_id"].string_or(""), "other");
    EXPECT_FALSE(params["_meta"]["x"].present()) << "a host does not reach the native _meta";
  }
}

TEST(McpToolCall, ASessionWithoutARunFillsInNone) {
  Host host;
  host.open();
  host.call_tool("resolve_pointer", R"({"pointers":["run://a"]})");
  EXPECT_FALSE(host.native.params("pointer.resolve")["run_id"].present());
  EXPECT_EQ(host.native.methods(), (std::vector<std::string>{"pointer.resolve"})) << "and records nothing";
}

TEST(McpToolCall, StatusTakesNoRun) {
  WithRun host;
  host.call_tool("status");
  EXPECT_FALSE(host.tool_params("server.status")["run_id"].present());
}

TEST(McpToolCall, RememberStoresATextUnderItsHash) {
  Host host;
  host.open();
  host.call_tool("remember", R"({"text":"so it is","title":"T"})");
  const Json params = host.native.params("corpus.ingest");
  EXPECT_EQ(params["corpus"].string_or(""), "memory");
  EXPECT_EQ(params["wait"].as_bool(), true);
  EXPECT_EQ(params["documents"].source(), fmt::format(R"([{{"id":"note-{}","text":"so it is","title":"T"}}])",
                                                      to_hex(sha256("so it is")).substr(0, 16)));
}

TEST(McpToolCall, RememberStoresAFileUnderItsPath) {
  Host host;
  host.open();
  host.call_tool("remember", R"({"path":"/a/b.md","corpus":"docs","wait":false})");
  const Json params = host.native.params("corpus.ingest");
  EXPECT_EQ(params["corpus"].string_or(""), "docs");
  EXPECT_EQ(params["wait"].as_bool(), false);
  EXPECT_EQ(params["documents"].source(), R"([{"id":"/a/b.md","path":"/a/b.md"}])");
}

TEST(McpToolCall, RememberKeepsAnIdOfItsOwn) {
  Host host;
  host.open();
  host.call_tool("remember", R"({"text":"t","id":"mine"})");
  EXPECT_EQ(host.native.params("corpus.ingest")["documents"].source(), R"([{"text":"t","id":"mine"}])");
}

TEST(McpToolCall, RememberTakesPlainTexts) {
  Host host;
  host.open();
  host.call_tool("remember", R"({"subject":"home","text":"t","source":"run://chat-1","id":"ignored"})");
  const Json params = host.native.params("corpus.ingest");
  EXPECT_EQ(params["documents"].source(), R"([{"id":"home","text":"t","source":"run://chat-1"}])");
  EXPECT_EQ(params["known"].as_bool(), true);
  host.call_tool("remember", R"({"subject":"plan","text":"t","source":"ev://memory/a#p0?v=1"})");
  EXPECT_EQ(host.native.params("corpus.ingest")["documents"].source(),
            R"([{"id":"plan","derived_from":["ev://memory/a#p0?v=1"],"text":"t"}])")
      << "a pointer is what the text was derived from";
}

TEST(McpToolCall, WhatASessionUnderReviewRemembersReplacesNothing) {
  Host host;
  host.tell("muniment/session", R"({"review":true})");
  host.open();
  host.call_tool("remember", R"({"subject":"home","text":"t","trust":"trusted"})");
  const Json params = host.native.params("corpus.ingest");
  EXPECT_EQ(params["corpus"].string_or(""), "memory.review");
  EXPECT_EQ(params["documents"].source(), R"([{"id":"home","trust":"quarantined","text":"t"}])");
}

TEST(McpToolCall, ForgetMemoriesAndHistoryNameTheSubject) {
  Host host;
  host.open();
  host.call_tool("forget", R"({"subject":"home","erase":"true"})");
  const Json forgotten = host.native.params("document.retract");
  EXPECT_EQ(forgotten["corpus"].string_or(""), "memory");
  EXPECT_EQ(forgotten["document"].string_or(""), "home");
  EXPECT_EQ(forgotten["erase"].as_bool(), true);
  EXPECT_FALSE(forgotten["reason"].string_or("").empty());
  host.call_tool("memories", R"({"corpus":"notes"})");
  EXPECT_EQ(host.native.params("document.list")["corpus"].string_or(""), "notes");
  EXPECT_EQ(host.native.params("document.list")["summaries"].as_bool(), true);
  host.call_tool("history", R"({"subject":"home"})");
  EXPECT_EQ(host.native.params("document.history")["document"].string_or(""), "home");
}

TEST(McpToolCall, RecallTakesAQuestion) {
  for (const char* tool : {"recall", "build_context"}) {
    Host host;
    host.open();
    host.call_tool(tool, R"({"question":"where?","budget_tokens":"500"})");
    const Json params = host.native.params("context.build");
    EXPECT_EQ(params["query"].string_or(""), "where?");
    EXPECT_EQ(params["budget_tokens"].as_int(), 500);
    host.native.answer("context.build", R"({"text":"","reason":"no_match"})");
    EXPECT_EQ(text_of(host.answer(host.last_id())), "Nothing is recalled: nothing stored is about it.");
    host.call_tool(tool, "{}");
    EXPECT_NE(text_of(host.answer(host.last_id())).find("question is required"), std::string::npos);
  }
}

TEST(McpToolCall, RememberWithoutADocumentIsAnErrorOfTheTool) {
  Host host;
  host.open();
  const Json answer = host.call_tool("remember", R"({"corpus":"docs"})");
  EXPECT_TRUE(is_error(answer));
  EXPECT_NE(text_of(answer).find("text, path or artifact_id"), std::string::npos);
  EXPECT_TRUE(host.native.requests.empty());
}

TEST(McpToolCall, ATextPartMayBeSpelledInThreeWays) {
  const std::string stored = R"([{"type":"text","content":"hi"}])";
  for (const char* content : {R"("hi")", R"(["hi"])", R"([{"type":"text","text":"hi"}])",
                              R"({"type":"text","text":"hi"})", R"([{"type":"text","content":"hi"}])"}) {
    Host host;
    host.open();
    host.call_tool(
        "record_event",
        fmt::format(R"({{"run_id":"r","type":"message.added","body":{{"role":"user","content":{}}}}})", content));
    EXPECT_EQ(host.native.params("event.append")["body"]["content"].source(), stored) << content;
    host.call_tool(
        "record_event",
        fmt::format(R"({{"run_id":"r","events":[{{"type":"message.added","body":{{"content":{}}}}}]}})", content));
    const Json params = host.native.params("event.append");
    EXPECT_EQ((*params["events"].begin())["body"]["content"].source(), stored) << content;
  }
}

TEST(McpToolCall, AMessageOrAThoughtMayBeItsTextAlone) {
  const std::string stored = R"([{"type":"text","content":"so"}])";
  for (const char* event :
       {R"("type":"thought.recorded","body":"so")", R"("type":"thought.recorded","content":"so")",
        R"("type":"thought.recorded","body":{"thought":"so"})", R"("type":"message.added","body":"so")",
        R"("type":"message.added","body":{"text":"so"})", R"("type":"message.added","text":"so")"}) {
    Host host;
    host.open();
    host.call_tool("record_event", fmt::format(R"({{"run_id":"r",{}}})", event));
    const Json params = host.native.params("event.append");
    EXPECT_EQ(params["body"]["content"].source(), stored) << event;
    EXPECT_FALSE(params["content"].present() || params["text"].present()) << event;
    const bool message = params["type"].string_or("") == "message.added";
    EXPECT_EQ(params["body"]["message_id"].present(), message) << event;
    EXPECT_EQ(params["body"]["role"].string_or(""), message ? "assistant" : "") << event;
  }
  Host host;
  host.open();
  host.call_tool("record_event",
                 R"({"run_id":"r","type":"message.added","body":{"message_id":"m1","role":"user","content":"so"}})");
  EXPECT_EQ(host.native.params("event.append")["body"].source(),
            R"({"message_id":"m1","role":"user","content":)" + stored + "}");
}

TEST(McpToolCall, OtherPartsAndBodiesOfOwnTypesStayAsTheyAre) {
  Host host;
  host.open();
  const std::string part = R"({"type":"artifact","artifact_id":"a","text":"not a text part"})";
  host.call_tool("record_event",
                 fmt::format(R"({{"run_id":"r","type":"message.added","body":{{"content":[{}]}}}})", part));
  EXPECT_EQ(host.native.params("event.append")["body"]["content"].source(), "[" + part + "]");
  host.call_tool("record_event", R"({"run_id":"r","type":"x.a.b","body":{"content":"plain","n":1.50}})");
  EXPECT_EQ(host.native.params("event.append")["body"].source(), R"({"content":"plain","n":1.50})");
  EXPECT_EQ(host.native.params("event.append")["spill"].as_bool(), true);
  host.call_tool("record_event", R"({"run_id":"r","type":"x.a.b","body":{},"spill":false})");
  EXPECT_EQ(host.native.params("event.append")["spill"].as_bool(), false);
}

TEST(McpToolCall, ArgumentsOfAnyOtherShapeReachTheNativeMethodWhichRefusesThem) {
  Host host;
  host.open();
  for (const char* arguments :
       {R"({"run_id":"r","events":5})", R"({"run_id":"r","events":[1,null]})",
        R"({"run_id":"r","body":7,"type":"message.added"})", R"({"run_id":"r","type":5,"body":{"content":null}})",
        R"({"run_id":"r","body":{"content":{}}})"}) {
    host.call_tool("record_event", arguments);
    EXPECT_EQ(host.native.waiting("event.append"), 1U) << arguments;
    host.native.refuse("event.append", "invalid_argument", "events: expected something else.");
    EXPECT_TRUE(is_error(host.answer(host.last_id()))) << arguments;
  }
}

TEST(McpToolCall, AResultIsAShortTextAndTheResultItself) {
  for (const bool stateless : {false, true}) {
    Host host({.stateless = stateless});
    if (!stateless) host.open();
    host.call_tool("rehydrate", R"({"run_id":"r"})");
    host.native.answer("run.rehydrate", R"({"run_seq":4,"state":{"plan":[]}})");
    const Json answer = host.answer(host.last_id());
    EXPECT_FALSE(is_error(answer));
    EXPECT_EQ(text_of(answer), "State as of run_seq 4:\n{\"plan\":[]}");
    EXPECT_EQ(answer["result"]["structuredContent"].source(), R"({"run_seq":4,"state":{"plan":[]}})");
  }
}

TEST(McpToolCall, ANativeErrorIsAResultThatSaysWhatToDo) {
  for (const bool stateless : {false, true}) {
    Host host({.stateless = stateless});
    if (!stateless) host.open();
    host.call_tool("record_claim", R"({"text":"so"})");
    host.native.refuse("claim.record", "over_budget", "The queue is full. Wait.", true);
    const Json answer = host.answer(host.last_id());
    EXPECT_TRUE(is_error(answer));
    EXPECT_EQ(text_of(answer), "over_budget: The queue is full. Wait. It can be retried.");
    EXPECT_EQ(answer["result"]["structuredContent"]["code"].string_or(""), "over_budget");
  }
}

TEST(McpToolCall, ACodeThatTheNativeMessageNamesIsNotRepeated) {
  Host host;
  host.open();
  host.call_tool("rehydrate", R"({"run_id":"r"})");
  host.native.refuse("run.rehydrate", "not_found", "not_found: no run r.");
  EXPECT_EQ(text_of(host.answer(host.last_id())), "not_found: no run r.");
}

TEST(McpToolCall, ADocumentThatIsNotStoredIsAnError) {
  Host host;
  host.open();
  host.call_tool("remember", R"({"path":"/no"})");
  host.native.answer("corpus.ingest", R"({"documents":[],"errors":[{"code":"not_found","message":"no such file."}]})");
  EXPECT_TRUE(is_error(host.answer(host.last_id())));
  EXPECT_EQ(text_of(host.answer(host.last_id())), "Not stored: not_found: no such file.");
}

TEST(McpToolCall, AMissingArgumentIsNamed) {
  Host host;
  host.open();
  host.call_tool("retrieve_evidence", R"({"query":"when"})");
  EXPECT_NE(text_of(host.answer(host.last_id())).find("queries is required"), std::string::npos);
  host.call_tool("record_event", R"({"type":"x.a.b","body":{}})");
  EXPECT_NE(text_of(host.answer(host.last_id())).find("Call run_start, and give its run_id"), std::string::npos);
  EXPECT_TRUE(host.native.requests.empty());
}

TEST(McpToolCall, AToolThatIsNotOfferedNamesItsToolset) {
  Host host;
  host.open();
  EXPECT_NE(error_text(host.call_tool("list_runs")).find("It belongs to the toolset runs"), std::string::npos);
}

TEST(McpToolCall, AToolsetThatThereIsNotIsRefused) {
  Host host;
  host.tell("muniment/session", R"({"toolsets":["runs","bogus"]})");
  host.ask("initialize", R"({"protocolVersion":"2025-11-25","capabilities":{}})");
  EXPECT_NE(error_text(host.answer(host.last_id())).find("--toolset: unknown toolset bogus"), std::string::npos);
}

TEST(McpToolCall, AnUnknownToolIsAnErrorWithTheNearestName) {
  Host host;
  host.open();
  EXPECT_EQ(error_code(host.call_tool("retrieve_evidense")), invalid_params);
  EXPECT_NE(error_text(host.call_tool("retrieve_evidense")).find("Did you mean retrieve_evidence?"), std::string::npos);
  EXPECT_EQ(error_text(host.call_tool("zzzzzzzzzzzzzzzzzz")).find("Did you mean"), std::string::npos);
  EXPECT_LT(error_text(host.call_tool(std::string(10'000, 'x'))).size(), 300U);
  EXPECT_EQ(error_code(host.ask("tools/call", "{}")), invalid_params);
  EXPECT_EQ(error_code(host.ask("tools/call", R"({"name":"status","arguments":[]})")), invalid_params);
  EXPECT_TRUE(host.native.requests.empty());
}

TEST(McpToolCall, ALongTextIsCutBetweenCharacters) {
  Host host;
  host.open();
  std::string text = "x";
  for (int i = 0; i < 5'000; ++i) text += "é";
  host.call_tool("resolve_pointer", R"({"pointers":["run://a"]})");
  host.native.answer("pointer.resolve",
                     fmt::format(R"({{"results":[{{"pointer":"run://a","ok":true,"text":"{}"}}],"halted":[]}})", text));
  const std::string shown = text_of(host.answer(host.last_id()));
  EXPECT_LT(shown.size(), 4'200U);
  EXPECT_NE(shown.find("é… (10001 bytes in all)"), std::string::npos);
  EXPECT_EQ(shown.find("\xEF\xBF\xBD"), std::string::npos) << "no half character";
}

TEST(McpToolCall, AHaltedRunIsSaidInTheText) {
  Host host;
  host.open();
  host.call_tool("resolve_pointer", R"({"pointers":["run://a"],"critical":true})");
  host.native.answer("pointer.resolve", R"({"results":[{"pointer":"run://a","ok":false,"reason":"NOT_FOUND"}],)"
                                        R"("halted":[{"run_id":"r","code":"SYSTEM_ERROR","reason":"gone"}]})");
  const std::string text = text_of(host.answer(host.last_id()));
  EXPECT_NE(text.find("Run r is stopped with SYSTEM_ERROR: gone."), std::string::npos);
  EXPECT_NE(text.find("muniment recover r"), std::string::npos);
}

TEST(McpToolCall, ProgressIsToldToAHostThatAskedForIt) {
  for (const char* token : {"\"t\"", "7"}) {
    Host host;
    host.open();
    host.ask("tools/call", fmt::format(R"({{"name":"status","_meta":{{"progressToken":{}}}}})", token));
    host.pass(500ms);
    EXPECT_EQ(host.notified("notifications/progress").size(), 0U) << "not within the first second";
    host.pass(1s);
    host.pass(1s);
    const std::vector<Json> progress = host.notified("notifications/progress");
    ASSERT_EQ(progress.size(), 2U);
    EXPECT_EQ(progress[0]["params"]["progressToken"].source(), token);
    EXPECT_LT(progress[0]["params"]["progress"].as_double(), progress[1]["params"]["progress"].as_double());
    host.native.answer("server.status", "{}");
    host.pass(1s);
    EXPECT_EQ(host.notified("notifications/progress").size(), 2U) << "none after the answer";
  }
}

TEST(McpToolCall, WithoutATokenNoProgressIsTold) {
  for (const char* meta : {"{}", R"({"progressToken":null})", R"({"progressToken":[1]})"}) {
    Host host;
    host.open();
    host.ask("tools/call", fmt::format(R"({{"name":"status","_meta":{}}})", meta));
    for (int i = 0; i < 5; ++i) host.pass(1s);
    EXPECT_TRUE(host.notified("notifications/progress").empty()) << meta;
  }
}

std::string handle_in(const Json& answer) { return answer["result"]["structuredContent"]["handle"].string_or(""); }

TEST(McpToolCall, ACallThatTakesAMinuteIsAnsweredWithAHandleForItsResult) {
  for (const bool stateless : {false, true}) {
    Host host({.stateless = stateless});
    if (!stateless) host.open();
    host.call_tool("rehydrate", R"({"run_id":"r"})");
    const std::string id = host.last_id();
    host.pass(59s);
    EXPECT_FALSE(host.answer(id));
    host.pass(1s);
    const std::string handle = handle_in(host.answer(id));
    ASSERT_TRUE(handle.starts_with("call-")) << handle;
    EXPECT_EQ(host.answer(id)["result"]["structuredContent"]["state"].string_or(""), "working");

    const std::string arguments = fmt::format(R"({{"handle":"{}"}})", handle);
    host.pass(5s);
    const Json waiting = host.call_tool("status", arguments);
    EXPECT_EQ(handle_in(waiting), handle);
    EXPECT_NE(text_of(waiting).find("for 5 s"), std::string::npos);
    host.tell("notifications/cancelled", fmt::format(R"({{"requestId":{}}})", id));
    EXPECT_EQ(host.native.waiting("run.rehydrate"), 1U) << "what has a handle goes on";

    host.native.answer("run.rehydrate", R"({"run_seq":4})");
    EXPECT_EQ(host.answers(id), 1U) << "it is answered once";
    for (int i = 0; i < 2; ++i) {
      const Json result = host.call_tool("status", arguments);
      EXPECT_EQ(result["result"]["structuredContent"].source(), R"({"run_seq":4})");
      EXPECT_EQ(text_of(result), "State as of run_seq 4");
    }
    EXPECT_EQ(host.native.waiting("server.status"), 0U) << "the daemon's status is not asked for";
  }
}

TEST(McpToolCall, AHandlesResultFitsTheRevisionThatAsksForIt) {
  Host old;
  old.open();
  old.call_tool("rehydrate", R"({"run_id":"r"})");
  old.pass(60s);
  const std::string arguments = fmt::format(R"({{"handle":"{}"}})", handle_in(old.answer(old.last_id())));
  old.native.answer("run.rehydrate", R"({"run_seq":4})");
  Host later(old.server, {.stateless = true});
  // Calls check_result on the answer too.
  EXPECT_EQ(text_of(later.call_tool("status", arguments)), "State as of run_seq 4");
}

TEST(McpToolCall, AnErrorOfACallWithAHandleIsItsResult) {
  Host host;
  host.open();
  host.call_tool("rehydrate", R"({"run_id":"r"})");
  host.pass(60s);
  const std::string arguments = fmt::format(R"({{"handle":"{}"}})", handle_in(host.answer(host.last_id())));
  host.native.refuse("run.rehydrate", "not_found", "no run r.");
  EXPECT_TRUE(is_error(host.call_tool("status", arguments)));
}

TEST(McpToolCall, AHandleIsItsOwnersAloneAndIsKeptForAnHour) {
  Host host;
  host.open();
  host.call_tool("rehydrate", R"({"run_id":"r"})");
  host.pass(60s);
  const std::string arguments = fmt::format(R"({{"handle":"{}"}})", handle_in(host.answer(host.last_id())));
  host.native.answer("run.rehydrate", R"({"run_seq":4})");

  Host stranger(host.server, {.owner = "uid:1001"});
  stranger.open();
  const Json refused = stranger.call_tool("status", arguments);
  EXPECT_TRUE(is_error(refused));
  EXPECT_NE(text_of(refused).find("not_found"), std::string::npos);
  Host second(host.server, {});
  second.open();
  EXPECT_FALSE(is_error(second.call_tool("status", arguments))) << "another session of the same owner has it";

  host.pass(1h);
  EXPECT_FALSE(is_error(host.call_tool("status", arguments)));
  host.pass(1s);
  EXPECT_TRUE(is_error(host.call_tool("status", arguments)));
}

TEST(McpToolCall, ACallWithAHandleOutlivesItsSession) {
  Host host;
  host.open();
  host.call_tool("rehydrate", R"({"run_id":"r"})");
  host.pass(60s);
  const std::string arguments = fmt::format(R"({{"handle":"{}"}})", handle_in(host.answer(host.last_id())));
  host.session->close();
  EXPECT_EQ(host.native.waiting("run.rehydrate"), 1U);
  host.native.answer("run.rehydrate", R"({"run_seq":4})");
  Host second(host.server, {});
  second.open();
  EXPECT_EQ(text_of(second.call_tool("status", arguments)), "State as of run_seq 4");
}

TEST(McpToolCall, WhenHandlesRunOutACallGoesOnWithoutOne) {
  Host host;
  host.open();
  for (std::size_t i = 0; i < limits::mcp_handles_max; ++i)
    ASSERT_TRUE(host.server.handles().open("uid:7", host.server.clock().monotonic()));
  host.call_tool("rehydrate", R"({"run_id":"r"})");
  host.pass(60s);
  EXPECT_FALSE(host.answer(host.last_id()));
  host.native.answer("run.rehydrate", R"({"run_seq":4})");
  EXPECT_EQ(text_of(host.answer(host.last_id())), "State as of run_seq 4");
}

}  // namespace
}  // namespace muniment::mcp
