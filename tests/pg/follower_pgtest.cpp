// Followers and the rebuild: the tables say what the log says, also after a restart, and whatever
// somebody does to them is found and put right.
#include <gtest/gtest.h>

#include <thread>

#include "evidence/pointer_follower.hpp"
#include "evidence/rebuild.hpp"
#include "store/run_follower.hpp"
#include "support/log_fixture.hpp"

namespace muniment::store {
namespace {

using test::ask_sql;
using test::run_sql;

class FollowerTest : public test::LogFixture {
 protected:
  void follow() {
    const Follower::Options options{{uri, 1}, std::chrono::milliseconds(1)};
    follower = std::make_unique<RunFollower>(options, *tail);
    pointers = std::make_unique<evidence::PointerFollower>(options, *tail);
    follower->start();
    pointers->start();
  }
  void catch_up() {
    for (int i = 0; i < 500; ++i) {
      if (follower->next_seq() >= tail->next_seq() && pointers->next_seq() >= tail->next_seq()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "the followers do not get on: " << follower->problem() << pointers->problem();
  }
  void stop_all() {
    close_log();
    follower.reset();
    pointers.reset();
  }
  void TearDown() override { stop_all(); }

  std::string field(const std::string& run_id, const std::string& column) {
    return ask_sql(uri, "SELECT " + column + " FROM run WHERE run_id = '" + run_id + "'");
  }
  Uuid record_claim(const std::shared_ptr<store::Run>& run, const std::string& pointer) {
    ClaimRow claim;
    claim.claim_id = make_uuid_v7(clock.now());
    claim.run_id = run->run_id;
    claim.text = "it works";
    claim.pointers = "[\"" + pointer + "\"]";
    append(run, "claim.recorded",
           R"({"claim_id":")" + claim.claim_id.text() + R"(","text":"it works","pointers":)" + claim.pointers + "}", {claim});
    return claim.claim_id;
  }
  Uuid record_evidence(const std::shared_ptr<store::Run>& run) {
    EvidenceRow row;
    row.evidence_id = make_uuid_v7(clock.now());
    row.run_id = run->run_id;
    row.type = "review";
    row.content = R"({"text": "looks good",  "n": 1e2})";
    row.hash = sha256("looks good");
    row.actor = "uid:1000";
    append(run, "evidence.recorded",
           R"({"evidence_id":")" + row.evidence_id.text() + R"(","type":"review","content":)" + *row.content +
               R"(,"hash":")" + to_hex(row.hash) + "\"}",
           {row});
    return row.evidence_id;
  }
  void link(const std::shared_ptr<store::Run>& run, const Uuid& claim_id, const Uuid& evidence_id) {
    append(run, "evidence.linked",
           R"({"claim_id":")" + claim_id.text() + R"(","evidence_id":")" + evidence_id.text() + R"(","relation":"supports"})",
           {EvidenceLinkRow{claim_id, evidence_id, "supports"}});
  }

  // Those whose followers are here; what events do to documents is known above.
  Result<evidence::RebuildReport> rebuild_tables(const std::vector<std::string>& tables = {"run", "pointer", "claim", "evidence",
                                                                                           "evidence_link", "artifact"}) {
    return evidence::rebuild({uri, 1}, tail->next_seq(), tables, [](const events::Event&) { return std::optional<CorpusChange>(); });
  }

  std::unique_ptr<RunFollower> follower;
  std::unique_ptr<evidence::PointerFollower> pointers;
};

TEST_F(FollowerTest, TheRunTableFollowsTheLog) {
  follow();
  const auto run = start_run("r1");
  append(run, "run.annotated", R"({"labels":{"kind":null,"team":"blue"}})");
  catch_up();
  EXPECT_EQ(field("r1", "status"), "open");
  EXPECT_EQ(field("r1", "labels::text"), R"({"team": "blue"})");
  append(run, "run.ended", R"({"outcome":"success"})");
  catch_up();
  EXPECT_EQ(field("r1", "status || ' ' || outcome"), "ended success");
  append(run, "run.resumed", R"({"kind":"reopened","why":"more"})");
  catch_up();
  EXPECT_EQ(field("r1", "status || coalesce(outcome, '-')"), "open-");
}

TEST_F(FollowerTest, WhatWasCommittedWhileNobodyFollowedIsCaughtUpFromTheTable) {
  for (int i = 0; i < 30; ++i) start_run("r" + std::to_string(i));
  close_log();
  open_log();  // the tail is empty now: only the table has these
  start_run("last");
  follow();
  catch_up();
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM run"), "31");
  EXPECT_EQ(ask_sql(uri, "SELECT next_seq FROM follower WHERE name = 'run'"), std::to_string(tail->next_seq()));
}

TEST_F(FollowerTest, AFollowerGoesOnWhereItStopped) {
  follow();
  start_run("r1");
  catch_up();
  stop_all();
  run_sql(uri, "UPDATE run SET agent = 'marked'");  // would be undone if its events were read again
  open_log();
  start_run("r2");
  follow();
  catch_up();
  EXPECT_EQ(field("r1", "agent"), "marked");
  EXPECT_EQ(field("r2", "agent"), "tester");
}

TEST_F(FollowerTest, ALostConnectionIsMadeAgain) {
  follow();
  start_run("r1");
  catch_up();
  run_sql(uri,
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
          "AND datname = current_database() AND query LIKE '%follower%'");
  start_run("r2");
  catch_up();
  EXPECT_EQ(field("r2", "status"), "open");
}

TEST_F(FollowerTest, ARebuildOfWhatIsRightFindsItEqual) {
  follow();
  const auto run = start_run("r1");
  const auto artifact = put(run, "bytes");
  const Uuid claim_id = record_claim(run, pointer_to(artifact));
  link(run, claim_id, record_evidence(run));
  append(run, "run.ended", R"({"outcome":"success"})");
  start_run("r2", "r1");
  catch_up();
  const auto report = rebuild_tables();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->tables.size(), 6u);
  for (const RebuiltTable& table : report->tables) {
    EXPECT_TRUE(table.equal()) << table.name << " missing " << table.missing << " unexpected " << table.unexpected;
    EXPECT_EQ(table.rows, table.name == "run" ? 2 : 1) << table.name;
  }
}

TEST_F(FollowerTest, WhatSomebodyChangedIsFoundAndPutRight) {
  follow();
  const auto run = start_run("r1");
  const auto artifact = put(run, "bytes");
  const Uuid claim_id = record_claim(run, pointer_to(artifact));
  link(run, claim_id, record_evidence(run));
  catch_up();
  run_sql(uri, "UPDATE run SET status = 'ended', outcome = 'success'; DELETE FROM pointer; "
               "UPDATE claim SET text = 'it does not work'; DELETE FROM evidence_link; DELETE FROM evidence");
  const auto report = rebuild_tables();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->equal());
  for (const RebuiltTable& table : report->tables) {
    EXPECT_EQ(table.equal(), table.name == "artifact") << table.name;
    EXPECT_EQ(table.replaced, table.name != "artifact") << table.name;
  }
  EXPECT_EQ(field("r1", "status"), "open");
  EXPECT_EQ(ask_sql(uri, "SELECT text FROM claim"), "it works");
  EXPECT_EQ(ask_sql(uri, "SELECT content::text FROM evidence"), R"({"text": "looks good",  "n": 1e2})");
  const auto again = rebuild_tables();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->equal());
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM pointer"), "1");
}

TEST_F(FollowerTest, TheFollowerGoesOnAfterARebuild) {
  follow();
  start_run("r1");
  catch_up();
  ASSERT_TRUE(rebuild_tables({"run"}));
  start_run("r2");
  catch_up();
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM run"), "2");
}

}  // namespace
}  // namespace muniment::store
