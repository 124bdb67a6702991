// Tests of the run that a session records: its events, in order, and failures to record them.
#include "mcp/session_run.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "unit/mcp_fixture.hpp"

namespace muniment::mcp {
namespace {

using namespace std::chrono_literals;

struct Recording : Host {
  explicit Recording(HostOptions options = {.record = true}) : Host(std::move(options)) {
    native.at_once = {{"run.start", "{}"}, {"event.append", "{}"}, {"run.end", "{}"}};
  }
  std::string run() const { return native.params("run.start")["run_id"].string_or(""); }
  // Returns "method type call_id" of each request, in order.
  std::vector<std::string> recorded() const {
    std::vector<std::string> all;
    for (const auto& request : native.requests) {
      std::string text = request.method;
      if (request.method == "event.append")
        text += " " + request.params["type"].string_or("") + " " + request.params["body"]["call_id"].string_or("");
      all.push_back(text);
    }
    return all;
  }
  void call_status() {
    call_tool("status");
    native.answer("server.status", "{}");
  }
};

TEST(McpSessionRun, ItBeginsWithTheFirstCallUnderTheClientsName) {
  Recording host;
  host.open("2025-11-25", R"({"name":"editor","version":"3.1","title":"An editor"})");
  host.ask("tools/list");
  EXPECT_TRUE(host.native.requests.empty());
  host.call_status();
  const Json params = host.native.params("run.start");
  EXPECT_TRUE(params["run_id"].string_or("").starts_with("mcp-"));
  EXPECT_EQ(params["agent"].source(), R"({"name":"editor","version":"3.1"})");
  EXPECT_EQ(params["client"].string_or(""), "mcp");
  host.open();
  host.call_status();
  EXPECT_EQ(host.native.all_params("run.start").size(), 1U) << "initialize again is the same run";
}

TEST(McpSessionRun, AStatelessSessionBeginsItWithItsFirstToolCall) {
  Recording host({.stateless = true, .record = true});
  host.ask("server/discover");
  host.ask("tools/list");
  EXPECT_TRUE(host.native.requests.empty());
  host.call_status();
  host.call_status();
  ASSERT_EQ(host.native.all_params("run.start").size(), 1U);
  EXPECT_EQ(host.native.params("run.start")["agent"]["name"].string_or(""), "host");
}

TEST(McpSessionRun, EachCallIsRecordedBeforeAndAfterItsRequest) {
  Recording host;
  host.open();
  host.call_status();
  host.call_status();
  EXPECT_EQ(host.recorded(),
            (std::vector<std::string>{"run.start", "event.append tool.called mcp-1", "server.status",
                                      "event.append tool.returned mcp-1", "event.append tool.called mcp-2",
                                      "server.status", "event.append tool.returned mcp-2"}));
  const std::vector<Json> events = host.native.all_params("event.append");
  EXPECT_EQ(events[0]["run_id"].string_or(""), host.run());
  EXPECT_EQ(events[0]["body"].source(),
            R"({"call_id":"mcp-1","name":"status","kind":"mcp","server":"muniment","arguments":{}})");
  EXPECT_EQ(events[1]["body"]["status"].string_or(""), "ok");
  EXPECT_EQ((*events[1]["body"]["content"].begin())["type"].string_or(""), "text");
}

TEST(McpSessionRun, AFailedCallIsRecordedAsAnError) {
  Recording host;
  host.open();
  host.call_tool("rehydrate");
  host.clock.pass(1500ms);
  host.native.refuse("run.rehydrate", "not_found", "no such run.");
  const Json returned = host.native.params("event.append");
  EXPECT_EQ(returned["body"]["status"].string_or(""), "error");
  EXPECT_EQ(returned["body"]["duration_us"].as_int(), 1'500'000);
  host.call_tool("remember", "{}");
  EXPECT_EQ(host.native.params("event.append")["body"]["status"].string_or(""), "error");
}

TEST(McpSessionRun, ACancelledCallIsRecordedAsCancelled) {
  Recording host;
  host.open();
  host.call_tool("rehydrate");
  host.tell("notifications/cancelled", fmt::format(R"({{"requestId":{}}})", host.last_id()));
  const Json returned = host.native.params("event.append");
  EXPECT_EQ(returned["type"].string_or(""), "tool.returned");
  EXPECT_EQ(returned["body"]["call_id"].string_or(""), "mcp-1");
  EXPECT_EQ(returned["body"]["status"].string_or(""), "cancelled");
}

TEST(McpSessionRun, UnknownToolsAndHandlesAreNotRecorded) {
  Recording host;
  host.open();
  host.call_tool("nonsense");
  host.call_tool("status", R"({"handle":"call-0"})");
  host.session->close();
  EXPECT_TRUE(host.recorded().empty());
}

TEST(McpSessionRun, ARunThatTheModelEndsIsFollowedByAnotherForTheNextCall) {
  Recording host;
  host.open();
  host.native.at_once.erase("run.end");
  host.call_tool("run_end", R"({"outcome":"success"})");
  const std::string first = host.run();
  EXPECT_EQ(host.native.params("run.end")["run_id"].string_or(""), first);
  host.native.answer("run.end", fmt::format(R"({{"run_id":"{}","seq":9}})", first));
  EXPECT_EQ(host.recorded().back(), "run.end") << "a run that has ended takes no more events";
  host.call_status();
  EXPECT_NE(host.run(), first);
  EXPECT_EQ(host.native.params("event.append")["run_id"].string_or(""), host.run());
  EXPECT_EQ(host.native.params("run.start")["agent"].source(), R"({"name":"host","version":"1.0"})");
}

TEST(McpSessionRun, ARunOfAnotherIdThatTheModelEndsIsNotTheSessions) {
  Recording host;
  host.open();
  host.native.at_once["run.end"] = R"({"run_id":"other","seq":9})";
  host.call_tool("run_end", R"({"run_id":"other","outcome":"success"})");
  host.call_status();
  EXPECT_EQ(host.native.all_params("run.start").size(), 1U);
  EXPECT_EQ(host.recorded().back(), "event.append tool.returned mcp-2");
}

TEST(McpSessionRun, ARunThatCouldNotBeEndedGoesOn) {
  Recording host;
  host.open();
  host.native.at_once["run.end"] = R"({"error":{"code":-1,"message":"no","data":{"code":"unavailable"}}})";
  host.call_tool("run_end", R"({"outcome":"success"})");
  EXPECT_EQ(host.recorded().back(), "event.append tool.returned mcp-1");
}

TEST(McpSessionRun, WhatCouldNotBeRecordedIsToldWithTheNextResultOnce) {
  for (const char* type : {"event.append", "run.start"}) {
    Recording host;
    host.native.at_once[type] = R"({"error":{"code":-1,"message":"the disk is full.","data":{"code":"unavailable"}}})";
    host.open();
    host.call_tool("status");
    host.native.at_once[type] = "{}";
    host.native.answer("server.status", "{}");
    const Json told = host.answer(host.last_id());
    EXPECT_FALSE(is_error(told)) << "the call itself has succeeded";
    EXPECT_NE(text_of(told).find("could not be recorded: the disk is full."), std::string::npos) << type;
    host.call_status();
    EXPECT_EQ(text_of(host.answer(host.last_id())).find("could not be recorded"), std::string::npos);
  }
}

TEST(McpSessionRun, ARunThatDidNotStartIsStartedByTheNextCall) {
  Recording host;
  host.native.at_once["run.start"] = R"({"error":{"code":-1,"message":"later.","data":{"code":"unavailable"}}})";
  host.open();
  host.call_status();
  EXPECT_NE(text_of(host.answer(host.last_id())).find("could not be recorded"), std::string::npos);
  const std::string first = host.run();
  host.native.at_once["run.start"] = "{}";
  host.call_status();
  ASSERT_EQ(host.native.all_params("run.start").size(), 2U);
  EXPECT_EQ(host.run(), first) << "under the same id: the first request may have been carried out";
}

TEST(McpSessionRun, ACallWaitsUntilTheRunHasStarted) {
  for (const bool stateless : {false, true}) {
    Recording host({.stateless = stateless, .record = true});
    host.native.at_once.erase("run.start");
    if (!stateless) host.open();
    host.call_tool("resolve_pointer", R"({"pointers":["run://a"]})");
    const std::string cancelled = host.last_id();
    host.ask("resources/read", uri_param("artifact://r/a"));
    host.call_tool("retrieve_evidence", R"({"queries":[]})");
    EXPECT_EQ(host.native.waiting("pointer.resolve") + host.native.waiting("evidence.retrieve"), 0U);
    host.tell("notifications/cancelled", fmt::format(R"({{"requestId":{}}})", cancelled));
    host.native.answer("run.start", "{}");
    EXPECT_EQ(host.native.waiting("pointer.resolve"), 1U) << "the cancelled call is not sent";
    EXPECT_EQ(host.native.waiting("evidence.retrieve"), 1U);
  }
}

TEST(McpSessionRun, ACallIsServedEvenIfTheRunCouldNotBeStarted) {
  Recording host;
  host.native.at_once.erase("run.start");
  host.open();
  host.call_tool("status");
  host.native.refuse("run.start", "unavailable", "later.");
  host.native.answer("server.status", "{}");
  EXPECT_NE(text_of(host.answer(host.last_id())).find("could not be recorded: later."), std::string::npos);
}

TEST(McpSessionRun, ASessionThatLeavesBeforeItsRunHasStartedEndsIt) {
  Recording host;
  host.native.at_once.erase("run.start");
  host.open();
  host.call_tool("status");
  host.session->close();
  host.native.answer("run.start", "{}");
  EXPECT_EQ(host.recorded(), (std::vector<std::string>{"run.start", "event.append tool.called mcp-1",
                                                       "event.append tool.returned mcp-1", "run.end"}));
}

TEST(McpSessionRun, EachResultSaysThatTheRunIsStoppedUntilItIsRecovered) {
  Recording host;
  host.open();
  host.native.at_once["event.append"] =
      R"({"error":{"code":-1,"message":"run_halted: SYSTEM_ERROR since noon.","data":{"code":"run_halted"}}})";
  for (int i = 0; i < 2; ++i) {
    host.call_status();
    const std::string text = text_of(host.answer(host.last_id()));
    EXPECT_NE(text.find("The run is stopped: run_halted: SYSTEM_ERROR since noon. This call is not recorded."),
              std::string::npos);
    EXPECT_EQ(text.find("could not be recorded"), std::string::npos);
  }
  host.native.at_once["event.append"] = "{}";
  host.call_status();
  EXPECT_EQ(text_of(host.answer(host.last_id())).find("stopped"), std::string::npos);
}

TEST(McpSessionRun, TheRunEndsWithTheSessionAndStaysOpenWhenTheDaemonStopsIfTheHostNamedIt) {
  Recording left;
  left.open();
  left.call_status();
  left.session->close();
  EXPECT_EQ(left.native.params("run.end")["run_id"].string_or(""), left.run());
  EXPECT_EQ(left.native.params("run.end")["outcome"].string_or(""), "unknown");
  left.session->close();
  EXPECT_EQ(left.native.all_params("run.end").size(), 1U);
  for (const bool named : {false, true}) {
    Recording stopped;
    if (named) stopped.tell("muniment/session", R"({"record":true,"run_id":"chosen"})");
    stopped.open();
    stopped.call_status();
    stopped.session->abandon();
    stopped.session->close();
    EXPECT_EQ(stopped.native.all_params("run.end").size(), named ? 0U : 1U);
  }
}

TEST(McpSessionRun, ASessionThatDoesNotRecordBeginsNoRun) {
  Recording host(HostOptions{});
  host.open();
  host.call_status();
  host.session->close();
  EXPECT_EQ(host.recorded(), (std::vector<std::string>{"server.status"}));
}

TEST(McpSessionRun, SettingsThatComeBeforeInitializeNameTheRun) {
  Recording host;
  host.tell("muniment/session", R"({"run_id":"mine","agent":"cli","cwd":"/home/a","labels":{"k":"v"},"resume":true})");
  host.open();
  const Json params = host.native.params("run.start");
  EXPECT_EQ(params["run_id"].string_or(""), "mine");
  EXPECT_EQ(params["agent"]["name"].string_or(""), "cli");
  EXPECT_EQ(params["cwd"].string_or(""), "/home/a");
  EXPECT_EQ(params["labels"].source(), R"({"k":"v"})");
  EXPECT_FALSE(params["reopen"].present());
  host.tell("muniment/session", R"({"run_id":"other","record":false})");
  host.call_status();
  EXPECT_EQ(host.native.params("event.append")["run_id"].string_or(""), "mine") << "an open run is not changed";
}

TEST(McpSessionRun, ARunThatTheModelEndedIsNotTakenUpAgain) {
  Recording host;
  host.native.at_once.erase("run.start");
  host.tell("muniment/session", R"({"run_id":"mine","resume":true})");
  host.open();
  EXPECT_EQ(host.run(), "mine");
  host.call_tool("rehydrate");
  host.native.refuse("run.start", "conflict", "run mine has ended.");
  EXPECT_EQ(host.run(), "mine-2");
  host.native.answer("run.start", "{}");
  EXPECT_EQ(host.native.params("event.append")["run_id"].string_or(""), "mine-2");
  EXPECT_EQ(host.native.params("run.rehydrate")["run_id"].string_or(""), "mine-2");
}

TEST(McpSessionRun, AHostMayTurnTheRunOff) {
  Recording host;
  host.tell("muniment/session", R"({"record":false})");
  host.open();
  host.call_status();
  EXPECT_EQ(host.recorded(), (std::vector<std::string>{"server.status"}));
}

TEST(McpSessionRun, AnyNameOfAClientMakesAGoodAgent) {
  const std::string long_name = std::string(255, 'x') + "é" + std::string(500, 'y');
  for (const std::string& info :
       {std::string("{}"), std::string(R"({"name":"","version":""})"), std::string("[]"),
        std::string(R"({"name":7,"version":[]})"), fmt::format(R"({{"name":"{0}","version":"{0}"}})", long_name)}) {
    Recording host;
    host.open("2025-11-25", info);
    host.call_status();
    const Json params = host.native.params("run.start");
    const std::string name = params["agent"]["name"].string_or("");
    EXPECT_TRUE(!name.empty() && name.size() <= 256) << info << ": " << name.size();
    EXPECT_LE(params["agent"]["version"].string_or("").size(), 256U);
  }
}

TEST(McpSessionRun, ASessionIsNotIdleWhileAnEventIsOnItsWay) {
  Recording host;
  host.open();
  host.native.at_once.erase("event.append");
  host.call_status();
  EXPECT_FALSE(host.session->idle());
  host.native.answer("event.append", "{}");
  host.native.answer("event.append", "{}");
  EXPECT_TRUE(host.session->idle());
}

}  // namespace
}  // namespace muniment::mcp
