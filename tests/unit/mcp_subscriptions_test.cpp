// Tests of a host's subscriptions: resources/subscribe (2025-11-25) and subscriptions/listen (2026-07-28).
#include <fmt/format.h>

#include "base/limits.hpp"
#include "unit/mcp_fixture.hpp"

namespace muniment::mcp {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view subscription_key = "io.modelcontextprotocol/subscriptionId";
constexpr std::string_view updated = "notifications/resources/updated";
constexpr std::string_view acknowledged = "notifications/subscriptions/acknowledged";

void happen(Host& host, int subscription, std::string_view method = "event") {
  const Json notification(
      fmt::format(R"({{"jsonrpc":"2.0","method":"{}","params":{{"subscription":{}}}}})", method, subscription));
  host.session->notified(notification.root());
}

// A 2025 session that follows run://r by the native subscription 7.
struct Following : Host {
  Following() {
    open();
    ask("resources/subscribe", uri_param("run://r"));
    native.answer("event.subscribe", R"({"subscription":7})");
  }
};

struct Listening : Host {
  Listening() : Host({.stateless = true}) {}
  Json listen(std::string_view uris, std::string id) {
    return ask("subscriptions/listen", fmt::format(R"({{"notifications":{{"resourceSubscriptions":{}}}}})", uris),
               std::move(id));
  }
};

TEST(McpSubscribe, AChangeOfTheResourceIsTold) {
  Following host;
  EXPECT_TRUE(host.answer(host.last_id())["result"].present());
  EXPECT_EQ(host.native.params("event.subscribe")["run_id"].string_or(""), "r");
  happen(host, 7);
  const std::vector<Json> told = host.notified(updated);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0]["params"].source(), R"({"uri":"run://r"})") << "without _meta";
}

TEST(McpSubscribe, ALogPointerIsFollowedByItsPointer) {
  Host host;
  host.open();
  for (const char* uri : {"log://runs/r/events", "log://validation", "log://metrics"}) {
    host.ask("resources/subscribe", uri_param(uri));
    EXPECT_EQ(host.native.params("event.subscribe")["pointer"].string_or(""), uri);
  }
}

TEST(McpSubscribe, OtherNotificationsAndOtherSubscriptionsAreNotTold) {
  Following host;
  happen(host, 8);
  happen(host, 7, "caught_up");
  happen(host, 7, "keep_alive");
  happen(host, 0);
  EXPECT_TRUE(host.notified(updated).empty());
}

TEST(McpSubscribe, ChangesWithinASecondAreToldOnce) {
  Following host;
  for (int i = 0; i < 100; ++i) happen(host, 7);
  EXPECT_EQ(host.notified(updated).size(), 1U);
  EXPECT_FALSE(host.session->idle()) << "the others are told later";
  host.pass(999ms);
  EXPECT_EQ(host.notified(updated).size(), 1U);
  host.pass(1ms);
  EXPECT_EQ(host.notified(updated).size(), 2U);
  EXPECT_TRUE(host.session->idle());
  host.pass(5s);
  EXPECT_EQ(host.notified(updated).size(), 2U) << "nothing has happened since";
}

TEST(McpSubscribe, AfterUnsubscribeNothingIsTold) {
  Following host;
  EXPECT_TRUE(host.ask("resources/unsubscribe", uri_param("run://r"))["result"].present());
  EXPECT_EQ(host.native.params("event.unsubscribe")["subscription"].as_int(), 7);
  happen(host, 7);
  EXPECT_TRUE(host.notified(updated).empty());
  EXPECT_TRUE(host.ask("resources/unsubscribe", uri_param("run://r"))["result"].present()) << "again is no error";
  EXPECT_EQ(host.native.all_params("event.unsubscribe").size(), 1U);
}

TEST(McpSubscribe, UnsubscribingBeforeTheSubscriptionIsThereLeavesNone) {
  Host host;
  host.open();
  host.ask("resources/subscribe", uri_param("run://r"));
  host.ask("resources/unsubscribe", uri_param("run://r"));
  host.native.answer("event.subscribe", R"({"subscription":7})");
  EXPECT_EQ(host.native.params("event.unsubscribe")["subscription"].as_int(), 7);
}

TEST(McpSubscribe, SubscribingAgainMeanwhileFollowsOnce) {
  Host host;
  host.open();
  host.ask("resources/subscribe", uri_param("run://r"));
  host.ask("resources/unsubscribe", uri_param("run://r"));
  host.ask("resources/subscribe", uri_param("run://r"));
  host.native.answer("event.subscribe", R"({"subscription":7})");
  if (host.native.waiting("event.subscribe") > 0) host.native.answer("event.subscribe", R"({"subscription":8})");
  const std::size_t left =
      host.native.all_params("event.subscribe").size() - host.native.all_params("event.unsubscribe").size();
  EXPECT_EQ(left, 1U) << "no native subscription is forgotten";
  happen(host, 7);
  happen(host, 8);
  EXPECT_EQ(host.notified(updated).size(), 1U);
}

TEST(McpSubscribe, TheSameResourceTwiceIsOneSubscription) {
  Following host;
  EXPECT_TRUE(host.ask("resources/subscribe", uri_param("run://r"))["result"].present());
  EXPECT_EQ(host.native.all_params("event.subscribe").size(), 1U);
  happen(host, 7);
  EXPECT_EQ(host.notified(updated).size(), 1U);
}

TEST(McpSubscribe, ARefusedSubscriptionFailsForEveryRequestThatWaitsForIt) {
  Host host;
  host.open();
  host.ask("resources/subscribe", uri_param("run://r"), "\"a\"");
  host.ask("resources/subscribe", uri_param("run://r"), "\"b\"");
  host.native.refuse("event.subscribe", "not_found", "no run r. See: muniment run list");
  for (const char* id : {"\"a\"", "\"b\""}) {
    EXPECT_EQ(error_code(host.answer(id)), invalid_params) << id;
    EXPECT_EQ(error_text(host.answer(id)), "no run r. See: muniment run list") << id;
  }
}

TEST(McpSubscribe, AnUnknownResourceIsRefusedAndOneThatNeverChangesIsNotFollowed) {
  Host host;
  host.open();
  for (const char* uri : {"", "nonsense", "http://a/b", "log://", "log://other", "run://"})
    EXPECT_EQ(error_code(host.ask("resources/subscribe", uri_param(uri))), invalid_params) << uri;
  EXPECT_EQ(error_code(host.ask("resources/subscribe")), invalid_params);
  EXPECT_TRUE(host.ask("resources/subscribe", uri_param("ev://memory/a"))["result"].present());
  EXPECT_TRUE(host.native.requests.empty());
}

TEST(McpSubscribe, TheLimitOfResourcesIsKeptAndUnsubscribingMakesRoom) {
  Host host;
  host.open();
  host.native.at_once["event.subscribe"] = R"({"subscription":1})";
  host.native.at_once["event.unsubscribe"] = "{}";
  const auto run = [](std::size_t i) { return uri_param(fmt::format("run://r{}", i)); };
  for (std::size_t i = 0; i < limits::subscriptions_per_connection_max; ++i)
    ASSERT_TRUE(host.ask("resources/subscribe", run(i))["result"].present()) << i;
  for (std::size_t i = 0; i < 20'000; ++i)
    ASSERT_EQ(error_code(host.ask("resources/subscribe", run(1'000 + i))), invalid_params);
  EXPECT_EQ(host.native.all_params("event.subscribe").size(), limits::subscriptions_per_connection_max);
  EXPECT_TRUE(host.ask("resources/subscribe", run(0))["result"].present()) << "one that is followed already";
  host.ask("resources/unsubscribe", run(0));
  EXPECT_TRUE(host.ask("resources/subscribe", run(1'000))["result"].present());
}

TEST(McpSubscribe, ClosingTheSessionEndsTheNativeSubscriptions) {
  Following host;
  host.session->close();
  EXPECT_EQ(host.native.params("event.unsubscribe")["subscription"].as_int(), 7);
  happen(host, 7);
  EXPECT_TRUE(host.notified(updated).empty());
}

TEST(McpListen, TheAcknowledgmentIsFirstAndNamesWhatIsFollowed) {
  Listening host;
  EXPECT_FALSE(host.listen(R"(["run://a","run://b","nonsense"])", "\"s\""));
  host.native.answer("event.subscribe", R"({"subscription":1})");
  happen(host, 1);
  EXPECT_TRUE(host.sent.empty()) << "nothing is told before the acknowledgment";
  host.native.answer("event.subscribe", R"({"subscription":2})");
  ASSERT_EQ(host.notified(acknowledged).size(), 1U);
  const json::Value params = host.sent.front()["params"];
  EXPECT_EQ(host.sent.front()["method"].string_or(""), acknowledged);
  EXPECT_EQ(params["_meta"][subscription_key].source(), "\"s\"");
  EXPECT_EQ(params["notifications"]["resourceSubscriptions"].source(), R"(["run://a","run://b"])");
  host.pass(1s);
  ASSERT_EQ(host.notified(updated).size(), 1U) << "what happened meanwhile is told then";
  EXPECT_EQ(host.notified(updated)[0]["params"]["uri"].string_or(""), "run://a");
}

TEST(McpListen, EveryNotificationCarriesTheIdOfItsStream) {
  Listening host;
  host.listen(R"(["run://a"])", "5");
  host.native.answer("event.subscribe", R"({"subscription":1})");
  host.listen(R"(["run://a"])", "\"five\"");
  happen(host, 1);
  const std::vector<Json> told = host.notified(updated);
  ASSERT_EQ(told.size(), 2U) << "once for each stream";
  EXPECT_EQ(told[0]["params"]["_meta"][subscription_key].source(), "5");
  EXPECT_EQ(told[1]["params"]["_meta"][subscription_key].source(), "\"five\"");
  EXPECT_EQ(host.native.all_params("event.subscribe").size(), 1U);
}

TEST(McpListen, CancellingEndsTheStreamAndNoOther) {
  Listening host;
  host.listen(R"(["run://a","run://b"])", "5");
  host.listen(R"(["run://b"])", "6");
  host.native.answer("event.subscribe", R"({"subscription":1})");
  host.native.answer("event.subscribe", R"({"subscription":2})");
  host.tell("notifications/cancelled", R"({"requestId":5})");
  ASSERT_EQ(host.native.all_params("event.unsubscribe").size(), 1U) << "run://b is followed by the other";
  EXPECT_EQ(host.native.params("event.unsubscribe")["subscription"].as_int(), 1);
  happen(host, 1);
  happen(host, 2);
  const std::vector<Json> told = host.notified(updated);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0]["params"]["_meta"][subscription_key].source(), "6");
  EXPECT_EQ(host.answers("5"), 0U);
}

TEST(McpListen, AStreamThatIsCancelledBeforeItsAcknowledgmentTellsNothing) {
  Listening host;
  host.listen(R"(["run://a"])", "5");
  host.tell("notifications/cancelled", R"({"requestId":5})");
  if (host.native.waiting("event.subscribe") > 0) host.native.answer("event.subscribe", R"({"subscription":1})");
  happen(host, 1);
  EXPECT_TRUE(host.sent.empty());
  EXPECT_TRUE(host.session->idle());
}

TEST(McpListen, WhatIsNotSentIsNotAcknowledged) {
  Listening host;
  host.ask("subscriptions/listen",
           R"({"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}})");
  ASSERT_EQ(host.notified(acknowledged).size(), 1U);
  EXPECT_EQ(host.sent[0]["params"]["notifications"].source(), "{}") << "the lists never change";
}

TEST(McpListen, AResourceThatIsNamedTwiceIsAcknowledgedOnce) {
  Listening host;
  host.listen(R"(["run://a","run://a"])", "5");
  host.native.answer("event.subscribe", R"({"subscription":1})");
  ASSERT_EQ(host.notified(acknowledged).size(), 1U);
  EXPECT_EQ(host.sent[0]["params"]["notifications"]["resourceSubscriptions"].source(), R"(["run://a"])");
  happen(host, 1);
  EXPECT_EQ(host.notified(updated).size(), 1U);
}

TEST(McpListen, WithoutAFilterOrBeyondTheLimitItIsRefused) {
  Listening host;
  EXPECT_EQ(error_code(host.ask("subscriptions/listen")), invalid_params);
  EXPECT_EQ(error_code(host.ask("subscriptions/listen", R"({"notifications":[]})")), invalid_params);
  std::string uris = "[";
  for (std::size_t i = 0; i <= limits::subscriptions_per_connection_max; ++i)
    uris += fmt::format(R"({}"run://r{}")", i == 0 ? "" : ",", i);
  EXPECT_EQ(error_code(host.listen(uris + "]", "5")), invalid_params);
  EXPECT_TRUE(host.native.requests.empty());
  EXPECT_TRUE(host.session->idle());
}

TEST(McpListen, UnsubscribingBySessionLeavesTheStream) {
  Listening host;
  host.listen(R"(["run://a"])", "5");
  host.native.answer("event.subscribe", R"({"subscription":1})");
  host.session->subscriptions().leave("run://a", "");
  happen(host, 1);
  EXPECT_EQ(host.notified(updated).size(), 1U);
}

}  // namespace
}  // namespace muniment::mcp
