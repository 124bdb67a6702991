// Tests of the conversation: the revision that serves a request, refused requests, and the end of a request.
#include "mcp/session.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "unit/mcp_fixture.hpp"

namespace muniment::mcp {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view version_member = R"("io.modelcontextprotocol/protocolVersion":)";
constexpr std::string_view capabilities_member = R"("io.modelcontextprotocol/clientCapabilities":)";

TEST(McpSession, EveryVersionWithInitializeIsNegotiated) {
  for (const char* version : {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}) {
    Host host;
    const Json opened = host.open(version);
    EXPECT_EQ(opened["result"]["protocolVersion"].string_or(""), version);
    EXPECT_EQ(opened["result"]["serverInfo"]["name"].string_or(""), "muniment");
    EXPECT_EQ(opened["result"]["serverInfo"]["version"].string_or(""), "1.2.3");
    EXPECT_FALSE(opened["result"]["instructions"].string_or("").empty());
    EXPECT_TRUE(host.ask("tools/list")["result"].present());
  }
}

TEST(McpSession, AnUnknownVersionIsAnsweredWithTheNewestThatHasInitialize) {
  for (const char* version : {"2026-07-28", "1999-01-01", "banana"}) {
    Host host;
    EXPECT_EQ(host.open(version)["result"]["protocolVersion"].string_or(""), "2025-11-25") << version;
  }
}

TEST(McpSession, InitializeWithoutAVersionIsRefusedAndMayBeTriedAgain) {
  Host host;
  EXPECT_EQ(error_code(host.ask("initialize")), invalid_params);
  EXPECT_EQ(error_code(host.ask("tools/list")), invalid_params) << "the session is not open";
  EXPECT_TRUE(host.open()["result"].present());
}

TEST(McpSession, CapabilitiesNameOnlyWhatIsSent) {
  Host host;
  const Json opened = host.open();
  const json::Value capabilities = opened["result"]["capabilities"];
  EXPECT_EQ(capabilities["resources"]["subscribe"].as_bool(), true);
  for (const char* list : {"tools", "prompts", "resources"})
    EXPECT_EQ(capabilities[list]["listChanged"].as_bool(), false) << list << ": no such notification is ever sent";
}

TEST(McpSession, BeforeInitializeOnlyPingIsServed) {
  Host host;
  EXPECT_TRUE(host.ask("ping")["result"].present());
  const Json refused = host.ask("tools/list");
  EXPECT_EQ(error_code(refused), invalid_params);
  EXPECT_NE(error_text(refused).find("initialize"), std::string::npos);
  EXPECT_TRUE(host.native.requests.empty());
}

TEST(McpSession, AStatelessRequestNeedsNoInitialize) {
  Host host({.stateless = true});
  const Json found = host.ask("server/discover");
  EXPECT_EQ((*found["result"]["supportedVersions"].begin()).string_or(""), "2026-07-28");
  EXPECT_TRUE(host.ask("tools/list")["result"].present());
}

TEST(McpSession, AStatelessRequestWithoutItsVersionOrCapabilitiesIsRefused) {
  Host host;
  EXPECT_EQ(error_code(host.ask("server/discover")), invalid_params);
  EXPECT_EQ(error_code(host.ask("subscriptions/listen", R"({"notifications":{}})")), invalid_params);
  EXPECT_EQ(error_code(host.ask("tools/list", fmt::format(R"({{"_meta":{{{}5}}}})", version_member))), invalid_params);
  for (const char* capabilities : {"", R"(,"x":1)", R"(,"io.modelcontextprotocol/clientCapabilities":[])",
                                   R"(,"io.modelcontextprotocol/clientCapabilities":"all")"}) {
    const Json refused =
        host.ask("tools/list", fmt::format(R"({{"_meta":{{{}"2026-07-28"{}}}}})", version_member, capabilities));
    EXPECT_EQ(error_code(refused), invalid_params) << capabilities;
    EXPECT_NE(error_text(refused).find("clientCapabilities"), std::string::npos);
  }
  for (const char* meta : {"[]", "7", "null", "\"2026-07-28\""})
    EXPECT_EQ(error_code(host.ask("tools/list", fmt::format(R"({{"_meta":{}}})", meta))), invalid_params) << meta;
}

TEST(McpSession, AnUnsupportedVersionIsToldWithThoseThatAreSupported) {
  Host host;
  for (const char* version : {"2099-01-01", "2025-11-25", ""}) {
    const Json refused = host.ask(
        "tools/list", fmt::format(R"({{"_meta":{{{}"{}",{}{{}}}}}})", version_member, version, capabilities_member));
    EXPECT_EQ(error_code(refused), unsupported_version) << version;
    EXPECT_EQ(refused["error"]["data"]["requested"].string_or("none"), version);
    EXPECT_EQ((*refused["error"]["data"]["supported"].begin()).string_or(""), "2026-07-28");
  }
}

TEST(McpSession, EachRevisionKnowsOnlyItsMethods) {
  Host initialized;
  initialized.open();
  EXPECT_EQ(error_code(initialized.ask("tools/lists")), method_not_found);
  Host stateless({.stateless = true});
  for (const char* method : {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
                             "tools/lists", "sampling/createMessage"}) {
    const Json refused = stateless.ask(method);
    EXPECT_EQ(error_code(refused), method_not_found) << method;
    EXPECT_NE(error_text(refused).find(method), std::string::npos) << "the error names it";
  }
}

TEST(McpSession, ALongNameOfAMethodIsNotRepeatedInFull) {
  Host host;
  host.open();
  EXPECT_LT(host.ask(std::string(100'000, 'x'))["error"].source().size(), 1'000U);
}

TEST(McpSession, BothRevisionsAreServedSideBySide) {
  Host host;
  host.open();
  const Json answer =
      host.ask("ping", fmt::format(R"({{"_meta":{{{}"2026-07-28",{}{{}}}}}})", version_member, capabilities_member));
  EXPECT_EQ(error_code(answer), method_not_found) << "ping is not known to 2026-07-28";
  EXPECT_TRUE(host.ask("ping")["result"].present());
}

TEST(McpSession, ALogLevelIsOneOfEight) {
  Host host;
  host.open();
  for (const char* level : {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"})
    EXPECT_TRUE(host.ask("logging/setLevel", fmt::format(R"({{"level":"{}"}})", level))["result"].present()) << level;
  EXPECT_EQ(error_code(host.ask("logging/setLevel", R"({"level":"loud"})")), invalid_params);
  EXPECT_EQ(host.session->opened().log_level, "emergency");
}

TEST(McpSession, ASecondRequestWithAnIdInProgressIsRefusedAndTheFirstIsServed) {
  Host host;
  host.open();
  EXPECT_FALSE(host.ask("tools/call", R"({"name":"status","arguments":{}})", "\"a\""));
  const Json refused = host.ask("tools/call", R"({"name":"status","arguments":{}})", "\"a\"");
  EXPECT_EQ(error_code(refused), invalid_request);
  EXPECT_EQ(host.native.waiting("server.status"), 1U);
  host.native.answer("server.status", R"({"version":"1"})");
  EXPECT_FALSE(is_error(host.answer("\"a\"")));
  EXPECT_TRUE(host.answer("\"a\"")["result"].present());
  EXPECT_FALSE(host.ask("tools/call", R"({"name":"status","arguments":{}})", "\"a\""))
      << "an id that was answered may be used again";
}

TEST(McpSession, AnIdThatIsANumberAndOneThatIsItsTextAreTwoIds) {
  Host host;
  host.open();
  host.ask("tools/call", R"({"name":"status"})", "50");
  host.ask("tools/call", R"({"name":"status"})", "\"50\"");
  EXPECT_EQ(host.native.waiting("server.status"), 2U);
}

TEST(McpSession, TheSameIdWrittenWithAnEscapeIsTheSameId) {
  Host host;
  host.open();
  host.ask("tools/call", R"({"name":"status"})", "\"a\"");
  host.say(R"({"jsonrpc":"2.0","id":"\u0061","method":"ping"})");
  EXPECT_EQ(error_code(host.sent.back()), invalid_request);
  host.tell("notifications/cancelled", R"({"requestId":"\u0061"})");
  EXPECT_EQ(host.native.waiting("server.status"), 0U);
}

TEST(McpSession, MoreRequestsThanTheLimitAreRefusedUntilOneIsAnswered) {
  Host host;
  host.open();
  for (std::size_t i = 0; i < limits::mcp_calls_per_session_max; ++i)
    ASSERT_FALSE(host.call_tool("status")) << "request " << i << " is in progress";
  const Json refused = host.call_tool("status");
  EXPECT_EQ(error_code(refused), internal_error);
  EXPECT_NE(error_text(refused).find("limit 128"), std::string::npos);
  host.native.answer("server.status", "{}");
  EXPECT_FALSE(host.call_tool("status")) << "there is room again";
  while (host.native.waiting("server.status") > 0) host.native.answer("server.status", "{}");
  EXPECT_EQ(host.sent.size(), 1 + 1 + limits::mcp_calls_per_session_max + 1);
}

TEST(McpSession, MoreBytesInProgressThanTheLimitAreRefusedUntilOneIsAnswered) {
  Host host;
  host.open();
  const std::string megabyte(1 << 20, 'x');
  const auto remember = [&] { return host.call_tool("remember", "{\"text\":\"" + megabyte + "\"}"); };
  for (int i = 0; i < 7; ++i) ASSERT_FALSE(remember()) << "request " << i << " is in progress";
  EXPECT_NE(error_text(remember()).find("limit 8388608"), std::string::npos);
  host.native.answer("corpus.ingest", R"({"documents":[],"errors":[],"seq":1})");
  EXPECT_FALSE(remember()) << "there is room again";
  while (host.native.waiting("corpus.ingest") > 0)
    host.native.answer("corpus.ingest", R"({"documents":[],"errors":[],"seq":1})");
}

TEST(McpSession, AResponseToNothingIsIgnored) {
  Host host;
  host.open();
  const std::size_t before = host.sent.size();
  host.say(R"({"jsonrpc":"2.0","id":99,"result":{}})");
  host.say(R"({"jsonrpc":"2.0","id":"muniment-1","error":{"code":1,"message":"no"}})");
  host.tell("notifications/nonsense", "{}");
  host.tell("notifications/cancelled", "{}");
  host.tell("notifications/cancelled", R"({"requestId":{"a":1}})");
  EXPECT_EQ(host.sent.size(), before);
  EXPECT_TRUE(host.ask("ping")["result"].present());
}

TEST(McpSession, ABadLineIsAnsweredAndDisablesNothing) {
  Host host;
  host.open();
  host.call_tool("status");
  host.say("garbage");
  EXPECT_EQ(error_code(host.sent.back()), parse_error);
  EXPECT_EQ(host.outgoing.back().request, "") << "it belongs to no request";
  host.say("[]");
  EXPECT_EQ(error_code(host.sent.back()), invalid_request);
  host.native.answer("server.status", "{}");
  EXPECT_TRUE(host.answer(host.last_id())["result"].present());
}

TEST(McpSession, ACancelledRequestGetsNoReplyAndItsNativeRequestIsCancelled) {
  for (const bool stateless : {false, true}) {
    Host host({.stateless = stateless});
    if (!stateless) host.open();
    host.call_tool("status");
    const std::size_t before = host.sent.size();
    const FakeNative::Done done = host.native.requests.back().done;
    host.tell("notifications/cancelled", fmt::format(R"({{"requestId":{},"reason":"impatient"}})", host.last_id()));
    EXPECT_TRUE(host.native.requests.back().cancelled);
    done({Json("{}").root(), {}});
    EXPECT_EQ(host.sent.size(), before) << "a reply that comes all the same is dropped";
    EXPECT_TRUE(host.session->idle());
  }
}

TEST(McpSession, CancellingAnotherIdOrAnAnsweredRequestDoesNothing) {
  Host host;
  host.open();
  host.call_tool("status");
  const std::string id = host.last_id();
  host.tell("notifications/cancelled", fmt::format(R"({{"requestId":"{}"}})", id));
  EXPECT_EQ(host.native.waiting("server.status"), 1U) << "a string is not a number";
  host.native.answer("server.status", "{}");
  host.tell("notifications/cancelled", fmt::format(R"({{"requestId":{}}})", id));
  EXPECT_EQ(host.answers(id), 1U);
}

TEST(McpSession, AHostThatLeavesCancelsItsRequestsAndIsNotHeardAnyMore) {
  Host host;
  host.open();
  host.call_tool("status");
  const std::size_t before = host.sent.size();
  host.session->close();
  EXPECT_TRUE(host.native.requests.back().cancelled);
  host.say(R"({"jsonrpc":"2.0","id":100,"method":"ping"})");
  host.session->close();
  EXPECT_EQ(host.sent.size(), before);
}

TEST(McpSession, AReplyThatComesAfterTheSessionIsGoneIsDropped) {
  auto host = std::make_unique<Host>(HostOptions{.record = true});
  host->open();
  host->call_tool("status");
  std::vector<FakeNative::Done> dones;
  for (const auto& request : host->native.requests) dones.push_back(request.done);
  host->session.reset();
  const Json empty("{}");
  for (const auto& done : dones) done({empty.root(), {}});
}

}  // namespace
}  // namespace muniment::mcp
