// Tests of a run's life cycle as clients see it, on a real log.
#include <gtest/gtest.h>

#include "support/method_caller.hpp"

namespace muniment {
namespace {

using test::MethodCaller;
using test::Outcome;

const std::string start_r1 = R"({"run_id":"r1","agent":{"name":"coder"},"goal":"fix it"})";

TEST(RunStart, ANewRunIsOpenAndItsNextEventIsTheSecond) {
  MethodCaller log;
  const Outcome started = log.call("run.start", start_r1);
  ASSERT_TRUE(started.ok()) << started.text;
  EXPECT_EQ(started["run_id"].as_string(), "r1");
  EXPECT_EQ(started["resumed"].as_bool(), false);
  EXPECT_EQ(started["run_seq"].as_int(), 1);
  const Outcome run = log.call("run.get", R"({"run_id":"r1"})");
  ASSERT_TRUE(run.ok()) << run.text;
  EXPECT_EQ(run["run"]["status"].as_string(), "open");
  EXPECT_EQ(run["run"]["agent"].as_string(), "coder");
  EXPECT_EQ(run["run"]["owner"].as_string(), "uid:1000");
  EXPECT_EQ(run["run"]["next_run_seq"].as_int(), 1);
}

TEST(RunStart, AnOpenRunIsTakenUpAgainAlsoAfterARestart) {
  MethodCaller log;
  const Outcome started = log.call("run.start", start_r1);
  for (const bool restarted : {false, true}) {
    if (restarted) log.restart();
    const Outcome again = log.call("run.start", start_r1);
    ASSERT_TRUE(again.ok()) << again.text;
    EXPECT_EQ(again["resumed"].as_bool(), true);
    EXPECT_EQ(again["seq"].as_int(), started["seq"].as_int());
    EXPECT_EQ(again["run_seq"].as_int(), 1);
  }
}

TEST(RunStart, OfTwoAtOnceTheSlowerOneResumes) {
  MethodCaller log;
  auto first = log.ask("run.start", start_r1);
  auto second = log.ask("run.start", start_r1);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(log.append(std::get<gateway::PendingAppend>(*std::move(first))).ok());
  const auto reply = log.append(std::get<gateway::PendingAppend>(*std::move(second)));
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_NE(reply->result.find("\"resumed\":true"), std::string::npos);
}

TEST(RunStart, AnEndedRunIsReopenedOnlyWhenAsked) {
  MethodCaller log;
  log.call("run.start", start_r1);
  ASSERT_TRUE(log.call("run.end", R"({"run_id":"r1","outcome":"success","summary":"done"})").ok());
  EXPECT_EQ(log.call("run.start", start_r1).code, "conflict");
  const Outcome reopened =
      log.call("run.start", R"({"run_id":"r1","agent":{"name":"coder"},"reopen":true,"why":"more"})");
  ASSERT_TRUE(reopened.ok()) << reopened.text;
  EXPECT_EQ(reopened["resumed"].as_bool(), true);
  EXPECT_EQ(reopened["reopened"].as_bool(), true);
  EXPECT_EQ(reopened["run_seq"].as_int(), 3);
  EXPECT_EQ(log.call("run.get", R"({"run_id":"r1"})")["run"]["status"].as_string(), "open");
}

TEST(RunStart, ARunOfSomebodyElseLooksAsIfItWereNotThere) {
  MethodCaller log;
  log.call("run.start", start_r1);
  log.caller = {1001, "uid:1001", false, 2};
  EXPECT_EQ(log.call("run.get", R"({"run_id":"r1"})").text, "no run r1. Start it: run.start");
  EXPECT_EQ(log.call("run.get", R"({"run_id":"r2"})").text, "no run r2. Start it: run.start");
  EXPECT_EQ(log.call("event.append", R"({"run_id":"r1","type":"x.a.b","body":{}})").code, "not_found");
  EXPECT_EQ(log.call("event.get", R"({"seq":0})").code, "not_found");
  EXPECT_EQ(log.call("event.list", R"({})").code, "denied");
  EXPECT_EQ(log.call("run.start", start_r1).code, "conflict");
  log.caller = {0, "uid:0", true, 3};
  EXPECT_TRUE(log.call("run.get", R"({"run_id":"r1"})").ok());
  EXPECT_TRUE(log.call("event.list", R"({})").ok());
}

TEST(RunStart, AnIdempotencyKeyNamesTheSameRun) {
  MethodCaller log;
  const Outcome first = log.call("run.start", R"({"agent":{"name":"coder"}})", "k");
  const Outcome again = log.call("run.start", R"({"agent":{"name":"coder"}})", "k");
  ASSERT_TRUE(first.ok() && again.ok()) << first.text << again.text;
  EXPECT_EQ(first["run_id"].as_string(), again["run_id"].as_string());
  EXPECT_EQ(again["resumed"].as_bool(), true);
  const Outcome other = log.call("run.start", R"({"agent":{"name":"coder"}})");
  EXPECT_NE(first["run_id"].as_string(), other["run_id"].as_string());
}

TEST(RunStart, AnImportMarksEveryEvent) {
  MethodCaller log;
  const std::string import =
      R"("import":{"format":"otlp","sha256":")" + std::string(64, 'a') + R"(","importer":"muniment 0.1"}})";
  ASSERT_TRUE(log.call("run.start", R"({"run_id":"r1","agent":{"name":"c"},)" + import).ok());
  ASSERT_TRUE(log.call("event.append", R"({"run_id":"r1","type":"x.a.b","body":{}})").ok());
  ASSERT_TRUE(log.call("run.end", R"({"run_id":"r1","outcome":"success"})").ok());
  const Outcome imported = log.call("event.list", R"({"run_id":"r1","origin":"imported"})");
  EXPECT_EQ(imported["events"].size(), 3u);
}

TEST(RunStart, AParentHearsOfItsChild) {
  MethodCaller log;
  log.call("run.start", start_r1);
  ASSERT_TRUE(log.call("run.start", R"({"run_id":"c1","agent":{"name":"helper"},)"
                                    R"("parent":{"run_id":"r1","call_id":"call-7"}})")
                  .ok());
  log.restart();
  ASSERT_TRUE(log.call("run.end", R"({"run_id":"c1","outcome":"failure"})").ok());
  const Outcome heard = log.call("event.list", R"({"run_id":"r1","types":["child.*"]})");
  ASSERT_EQ(heard["events"].size(), 2u) << heard.text;
  auto event = heard["events"].begin();
  EXPECT_EQ((*event)["body"].source(), R"({"run_id":"c1","kind":"subagent","call_id":"call-7"})");
  ++event;
  EXPECT_EQ((*event)["body"].source(), R"({"run_id":"c1","outcome":"failure"})");
  EXPECT_EQ(log.call("run.get", R"({"run_id":"c1"})")["run"]["parent"].as_string(), "r1");
  EXPECT_EQ(log.call("run.start", R"({"agent":{"name":"h"},"parent":{"run_id":"nobody"}})").code, "not_found");
}

TEST(RunEnd, AnEndedParentIsLeftAlone) {
  MethodCaller log;
  log.call("run.start", start_r1);
  log.call("run.start", R"({"run_id":"c1","agent":{"name":"helper"},"parent":{"run_id":"r1"}})");
  ASSERT_TRUE(log.call("run.end", R"({"run_id":"r1","outcome":"success"})").ok());
  EXPECT_TRUE(log.call("run.end", R"({"run_id":"c1","outcome":"success"})").ok());
  EXPECT_EQ(log.call("run.get", R"({"run_id":"r1"})")["run"]["next_run_seq"].as_int(), 3);
}

TEST(RunAnnotate, AnEndedRunTakesLabelsAndOneKeyWritesOnce) {
  MethodCaller log;
  log.call("run.start", start_r1);
  log.call("run.end", R"({"run_id":"r1","outcome":"success"})");
  const std::string label = R"({"run_id":"r1","labels":{"reviewed":true}})";
  const Outcome first = log.call("run.annotate", label, "k");
  const Outcome again = log.call("run.annotate", label, "k");
  ASSERT_TRUE(first.ok() && again.ok()) << first.text << again.text;
  EXPECT_EQ(first["seq"].as_int(), again["seq"].as_int());
  EXPECT_EQ(again["receipt"]["duplicate"].as_bool(), true);
  EXPECT_EQ(again["receipt"]["leaf_hash"].source(), first["receipt"]["leaf_hash"].source());
  EXPECT_EQ(log.call("run.get", R"({"run_id":"r1"})")["run"]["labels"].source(), R"({"reviewed":true})");
  EXPECT_EQ(log.call("run.annotate", R"({"run_id":"r1"})").code, "invalid_argument");
}

TEST(RunList, SaysWhenItIsBehind) {
  MethodCaller log;
  log.call("run.start", start_r1);
  const Outcome behind = log.call("run.list", "{}");
  ASSERT_TRUE(behind.ok()) << behind.text;
  EXPECT_EQ(behind["behind"].as_int(), 1);
}

TEST(Server, SaysWhereItStands) {
  MethodCaller log;
  log.call("run.start", start_r1);
  const Outcome status = log.call("server.status", "{}");
  ASSERT_TRUE(status.ok()) << status.text;
  EXPECT_EQ(status["log"]["size"].as_int(), 1);
  // This log has no search child, which is reported as degraded.
  const auto degraded = [&] {
    const Outcome now = log.call("server.status", "{}");
    std::size_t count = 0;
    for (const json::Value what : now["degraded"])
      count += what.string_or("").starts_with("search: ") ? std::size_t{0} : std::size_t{1};
    return count;
  };
  EXPECT_EQ(degraded(), 0u);
  EXPECT_EQ(log.call("server.health", "{}")["database"].as_string(), "up");
  log.services().appender.refuse(Error(Errc::system_error, "not what was signed"));
  const Outcome refusing = log.call("server.health", "{}");
  EXPECT_EQ(refusing["ok"].as_bool(), false);
  EXPECT_EQ(refusing["database"].as_string(), "up");
  EXPECT_EQ(refusing["reason"].as_string(), "not what was signed");
  EXPECT_EQ(degraded(), 1u);
  EXPECT_NE(log.call("server.metrics", "{}").text.find("muniment_log_events_total 1"), std::string::npos);
}

}  // namespace
}  // namespace muniment
