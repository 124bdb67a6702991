// Tests of followers and the rebuild: the tables agree with the log, also after a restart, and any change to them by
// another writer is detected and repaired.
#include <gtest/gtest.h>

#include <thread>

#include "evidence/pointer_follower.hpp"
#include "evidence/rebuild.hpp"
#include "store/logs/erasure.hpp"
#include "store/tables/rebuild.hpp"
#include "store/tables/run_follower.hpp"
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
           R"({"claim_id":")" + claim.claim_id.text() + R"(","text":"it works","pointers":)" + claim.pointers + "}",
           {claim});
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
           R"({"claim_id":")" + claim_id.text() + R"(","evidence_id":")" + evidence_id.text() +
               R"(","relation":"supports"})",
           {EvidenceLinkRow{claim_id, run->run_id, evidence_id, "supports"}});
  }

  // Rebuilds the tables of this layer's followers; a layer above computes the changes of documents.
  Result<evidence::RebuildReport> rebuild_tables(const std::vector<std::string>& tables = {"run", "pointer", "claim",
                                                                                           "evidence", "evidence_link",
                                                                                           "artifact"}) {
    return evidence::rebuild({uri, 1}, tail->next_seq(), tables,
                             [](const events::Event&) { return std::optional<CorpusChange>(); });
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
  open_log();  // the tail is empty now: these events are only in the table
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

// A foreign trigger skips the row: readers of the table rely on the position.
TEST_F(FollowerTest, APositionThatPostgresDoesNotKeepIsSaid) {
  follow();
  start_run("r1");
  catch_up();
  run_sql(uri,
          "CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
          "CREATE TRIGGER leave_out BEFORE UPDATE ON follower FOR EACH ROW EXECUTE FUNCTION leave_out()");
  const std::int64_t at = follower->next_seq();
  start_run("r2");
  for (int i = 0; i < 500 && follower->problem().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_NE(follower->problem().find("tables_changed"), std::string::npos) << follower->problem();
  EXPECT_EQ(follower->next_seq(), at);
  run_sql(uri, "DROP TRIGGER leave_out ON follower");
  catch_up();
  EXPECT_EQ(field("r2", "status"), "open");
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
    EXPECT_EQ(table.rows, table.name == "run" || table.name == "pointer" ? 2 : 1) << table.name;
  }
}

TEST_F(FollowerTest, WhatSomebodyChangedIsFoundAndPutRight) {
  follow();
  const auto run = start_run("r1");
  const auto artifact = put(run, "bytes");
  const Uuid claim_id = record_claim(run, pointer_to(artifact));
  link(run, claim_id, record_evidence(run));
  catch_up();
  run_sql(uri,
          "UPDATE run SET status = 'ended', outcome = 'success'; DELETE FROM pointer; "
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
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM pointer"), "2");
}

TEST_F(FollowerTest, WhatIsErasedWhileTheTablesAreRebuiltDoesNotComeBack) {
  follow();
  const auto run = start_run("r1");
  record_claim(run, "run://r1");
  const Uuid evidence_id = record_evidence(run);
  catch_up();
  for (const std::string table : {"claim", "evidence", "pointer"}) {
    Rebuild work({uri, 1});
    ASSERT_TRUE(work.collect(tail->next_seq()));
    const std::int64_t seq = std::stoll(ask_sql(uri, "SELECT max(seq) FROM event WHERE salt IS NOT NULL AND type = '" +
                                                         (table == "evidence" ? table : "claim") + ".recorded'"));
    append(run, "event.redacted", R"({"seq":)" + std::to_string(seq) + R"(,"reason":"r","by":"uid:0"})");
    Connection redactor(uri, DatabaseRole::redactor);
    const Status erased = erase_copies(redactor, 1, run->view().run_no, {seq}, {}, std::nullopt);
    ASSERT_TRUE(erased) << erased.error().message;
    // The row was deleted too, so that the rebuilt row conflicts with nothing.
    run_sql(uri, "DELETE FROM " + table);
    const auto rebuilt = table == "pointer" ? work.rebuild_pointers([](const events::Event& event, std::string_view) {
      return event.body ? evidence::pointers_of(event, {}) : std::vector<PointerRow>();
    })
                                            : work.rebuild(table);
    ASSERT_FALSE(rebuilt) << table;
    EXPECT_EQ(rebuilt.error().code, Errc::conflict) << rebuilt.error().message;
    EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM " + table), "0");
    if (table == "evidence") record_claim(run, "run://r1");  // for the next table
    catch_up();
  }
  EXPECT_FALSE(evidence_id.text().empty());
  EXPECT_TRUE(rebuild_tables()->equal());
}

TEST_F(FollowerTest, ARebuildTakesOutWhatARowSaysOfAnErasedEvent) {
  follow();
  const auto run = start_run("r1");
  record_claim(run, "run://r1");
  record_evidence(run);
  catch_up();
  for (const std::string type : {"claim.recorded", "evidence.recorded"}) {
    const std::int64_t seq = std::stoll(ask_sql(uri, "SELECT seq FROM event WHERE type = '" + type + "'"));
    append(run, "event.redacted", R"({"seq":)" + std::to_string(seq) + R"(,"reason":"r","by":"uid:0"})");
    Connection redactor(uri, DatabaseRole::redactor);
    ASSERT_TRUE(erase_copies(redactor, 1, run->view().run_no, {seq}, {}, std::nullopt));
  }
  EXPECT_TRUE(rebuild_tables()->equal());
  run_sql(uri, "UPDATE claim SET text = 'secret'; UPDATE evidence SET content = '{\"text\": \"secret\"}'");
  const auto report = rebuild_tables({"claim", "evidence"});
  ASSERT_TRUE(report) << report.error().message;
  for (const RebuiltTable& table : report->tables) EXPECT_EQ(table.unexpected, 1) << table.name;
  EXPECT_EQ(ask_sql(uri, "SELECT text || pointers FROM claim"), "[]");
  EXPECT_EQ(ask_sql(uri, "SELECT content::text FROM evidence"), "{}");
  EXPECT_TRUE(rebuild_tables()->equal());
}

TEST_F(FollowerTest, WhatIsDecidedWhileClaimsAreRebuiltStays) {
  follow();
  const auto run = start_run("r1");
  const Uuid decided = record_claim(run, "run://r1"), damaged = record_claim(run, "run://r1");
  const auto decide = [&](const std::string& status) {
    append(run, "claim.decided", R"({"claim_id":")" + decided.text() + R"(","status":")" + status + "\"}",
           {ClaimDecisionRow{decided, status}});
  };
  decide("refuted");
  Rebuild work({uri, 1});
  ASSERT_TRUE(work.collect(tail->next_seq()));
  decide("supported");
  auto rebuilt = work.rebuild("claim");
  ASSERT_TRUE(rebuilt) << rebuilt.error().message;
  EXPECT_TRUE(rebuilt->equal());
  run_sql(uri, "UPDATE claim SET text = 'another' WHERE claim_id = '" + damaged.text() + "'");
  decide("withdrawn");
  rebuilt = work.rebuild("claim");
  ASSERT_TRUE(rebuilt) << rebuilt.error().message;
  EXPECT_TRUE(rebuilt->replaced);
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM claim WHERE text = 'another'"), "0");
  EXPECT_EQ(ask_sql(uri, "SELECT status FROM claim WHERE claim_id = '" + decided.text() + "'"), "withdrawn");
  EXPECT_TRUE(rebuild_tables()->equal());
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
