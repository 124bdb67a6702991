// Tests of commits in each of the ways that a batch is written: a small one by a pipeline of prepared statements, a
// large one by COPY. Both must store the same bytes and return the same outcome, including after errors.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <pqxx/pqxx>
#include <string>
#include <thread>
#include <vector>

#include "store/append/append_connection.hpp"
#include "store/postgres/partitions.hpp"
#include "store/read/reader.hpp"
#include "support/postgres_fixture.hpp"

namespace muniment::store {
namespace {

using namespace std::chrono_literals;
using test::ask_sql;
using test::run_sql;

constexpr std::size_t largest_pipelined = 8;
constexpr Time noon{1'700'000'000'123'456};

class AppendConnectionTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    Connection connection(uri_, DatabaseRole::writer);
    const auto made = ensure_partitions(connection, 1, 0);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(appending_.connect(10s));
    auto taken = appending_.take_over(std::nullopt);
    ASSERT_TRUE(taken) << taken.error().message;
    epoch_ = taken->epoch;
  }

  // Creates as many events as the parameter states; every second event has all optional fields.
  std::vector<EventPtr> events() {
    std::vector<EventPtr> made;
    for (std::size_t i = 0; i < GetParam(); ++i) {
      auto event = std::make_shared<events::Event>();
      event->seq = event->run_seq = next_seq_++;
      event->run_no = 0;  // the log's own run, which always exists
      event->recorded_at = Time{noon.micros + event->seq};
      if (i % 2 == 1) event->occurred_at = Time{-1};
      event->origin = events::Origin::observed;
      event->type = "x.test.\u00e9";
      event->schema_version = 3;
      if (i % 2 == 1) event->step_id = "step \\ \t 1";
      event->actor = "uid:1000";
      event->event_id = make_uuid_v8("event " + std::to_string(event->seq));
      event->body = R"({"b" : 1.0,  "a":"\u0041\n\\"})";
      event->salt = sha256("salt " + std::to_string(event->seq));
      event->body_hash = sha256(*event->body);
      event->run_hash = sha256("run " + std::to_string(event->seq));
      made.push_back(std::move(event));
    }
    return made;
  }

  CommitResult commit(const std::vector<EventPtr>& events, const std::vector<Row>& rows = {},
                      std::chrono::milliseconds at_most = 20s) {
    return appending_.commit({events, rows}, epoch_, at_most, {[] {}, [this] { ++meanwhile_; }});
  }

  std::string stored() { return ask_sql(uri_, "SELECT count(*) FROM event"); }

  // Waits until this number of sessions waits for a lock.
  void await_waiting(const std::string& sessions) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (
        ask_sql(
            uri_,
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") !=
        sessions) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      std::this_thread::sleep_for(1ms);
    }
  }

  const std::string uri_ = test::fresh_database();
  AppendConnection appending_{uri_, 1, make_uuid_v8("a writer")};
  std::int64_t epoch_ = 0;
  std::int64_t next_seq_ = 0;
  int meanwhile_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Batches, AppendConnectionTest, ::testing::Values(1, largest_pipelined, largest_pipelined + 1),
                         [](const auto& batch) { return "Of" + std::to_string(batch.param); });

TEST_P(AppendConnectionTest, EveryColumnIsStoredAsItWasGiven) {
  const auto first = events(), second = events();
  for (const auto& batch : {first, second}) {
    const CommitResult result = commit(batch);
    ASSERT_EQ(result.outcome, CommitOutcome::committed) << result.message;
  }
  EXPECT_EQ(meanwhile_, 2);
  Reader reader({uri_, 1});
  auto read = reader.events({}, 1'000);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2 * GetParam());
  for (std::size_t i = 0; i < read->size(); ++i) {
    const events::Event& got = (*read)[i];
    const events::Event& given = i < GetParam() ? *first[i] : *second[i - GetParam()];
    EXPECT_EQ(got.seq, given.seq);
    EXPECT_EQ(got.run_no, given.run_no);
    EXPECT_EQ(got.run_seq, given.run_seq);
    EXPECT_EQ(got.recorded_at, given.recorded_at);
    EXPECT_EQ(got.occurred_at, given.occurred_at);
    EXPECT_EQ(got.origin, given.origin);
    EXPECT_EQ(got.type, given.type);
    EXPECT_EQ(got.schema_version, given.schema_version);
    EXPECT_EQ(got.step_id, given.step_id);
    EXPECT_EQ(got.actor, given.actor);
    EXPECT_EQ(got.event_id, given.event_id);
    EXPECT_EQ(got.body_hash, given.body_hash);
    EXPECT_EQ(got.salt, given.salt);
    EXPECT_EQ(got.body, given.body);
    EXPECT_EQ(got.run_hash, given.run_hash);
  }
}

// The batch exceeds the socket's send buffer.
TEST_P(AppendConnectionTest, BodiesOfTheLargestSizeAreStoredWhole) {
  auto batch = events();
  for (EventPtr& event : batch) {
    auto large = std::make_shared<events::Event>(*event);
    large->body = "{\"t\":\"" + std::string(61'432, 'a') + "\"}";
    event = large;
  }
  const CommitResult result = commit(batch);
  ASSERT_EQ(result.outcome, CommitOutcome::committed) << result.message;
  EXPECT_EQ(ask_sql(uri_, "SELECT sum(octet_length(body::text)) FROM event"), std::to_string(61'440 * GetParam()));
}

TEST_P(AppendConnectionTest, TheRowsBesideTheEventsAreStoredWithThem) {
  const auto id = [](const std::string& name) { return make_uuid_v8(name); };
  const std::string odd = "a\\\t\"\u00e9\n";
  const Hash hash = sha256("bytes");
  const std::vector<Row> rows = {
      ArtifactRow{id("artifact"), "r1", "main", "runs/r1/main/a", hash, "text/plain", 5, noon, R"({"k": [1, null]})",
                  0},
      ManifestRow{id("manifest"), "r1", id("base"), sha256("salt"), hash, 17, R"({"b" : 2, "a": 1})", noon, 0},
      ManifestRow{id("erased"), "r1", std::nullopt, std::nullopt, hash, 17, std::nullopt, noon, 0},
      SnapshotRow{1, 0, 0, 0, sha256("salt"), hash, sha256("state"), 9, R"({ "s":1 })", std::nullopt, "events", noon},
      SnapshotRow{1, 1, 1, 0, sha256("salt"), hash, sha256("state"), 99'999, std::nullopt, id("artifact"), "events",
                  noon},
      ClaimRow{id("claim"), "r1", std::nullopt, odd, R"(["artifact://r1/a"])", "open", noon, 0},
      EvidenceRow{id("evidence"),
                  "r1",
                  "x.test",
                  R"({"n" : 1e2})",
                  std::nullopt,
                  hash,
                  std::nullopt,
                  "uid:1",
                  {},
                  {},
                  {},
                  {},
                  "task 1",
                  id("command"),
                  noon,
                  0},
      EvidenceLinkRow{id("claim"), "r1", id("evidence"), "supports", 0},
      TaskChangeRow{"r1", odd, "completed", 0},
      TaskEvidenceRow{"r1", odd, id("evidence"), 7, 0}};
  const CommitResult result = commit(events(), rows);
  ASSERT_EQ(result.outcome, CommitOutcome::committed) << result.sqlstate << " " << result.message;
  const auto ask = [&](const std::string& sql) { return ask_sql(uri_, sql); };
  const std::string at = "created_at = '" + format_time(noon) + "' AND seq = 0 AND log_no = 1";
  EXPECT_EQ(
      ask("SELECT metadata::text || size_bytes || mime_type FROM artifact WHERE path = 'runs/r1/main/a' AND step_id = 'main' AND "
          "run_id = 'r1' AND hash = '" +
          to_hex(hash) + "' AND artifact_id = '" + id("artifact").text() + "' AND " + at),
      R"({"k": [1, null]}5text/plain)");
  EXPECT_EQ(ask("SELECT manifest::text || size_bytes || base_id FROM manifest WHERE manifest_id = '" +
                id("manifest").text() + "' AND salt = sha256('salt') AND hash = sha256('bytes') AND " + at),
            R"({"b" : 2, "a": 1}17)" + id("base").text());
  EXPECT_EQ(
      ask("SELECT num_nulls(base_id, salt, manifest) FROM manifest WHERE manifest_id = '" + id("erased").text() + "'"),
      "3");
  EXPECT_EQ(
      ask("SELECT state::text || size_bytes || reason FROM snapshot WHERE run_no = 1 AND run_seq = 0 AND event_seq = 0 AND "
          "state_hash = sha256('state') AND hash = sha256('bytes') AND artifact_id IS NULL AND " +
          at),
      R"({ "s":1 }9events)");
  EXPECT_EQ(ask("SELECT artifact_id FROM snapshot WHERE seq = 1 AND state IS NULL"), id("artifact").text());
  EXPECT_EQ(ask("SELECT text || pointers || status FROM claim WHERE step_id IS NULL AND run_id = 'r1' AND " + at),
            odd + R"(["artifact://r1/a"]open)");
  EXPECT_EQ(
      ask("SELECT content::text || type || actor FROM evidence WHERE pointer IS NULL AND validator_id IS NULL AND hash = '" +
          to_hex(hash) + "' AND " + at),
      R"({"n" : 1e2}x.testuid:1)");
  EXPECT_EQ(ask("SELECT task_id || ' ' || command_id FROM evidence WHERE seq = 0"), "task 1 " + id("command").text());
  EXPECT_EQ(ask("SELECT task_id || change FROM task_change WHERE run_id = 'r1' AND seq = 0 AND log_no = 1"),
            odd + "completed");
  EXPECT_EQ(ask("SELECT task_id || evidence_seq FROM task_evidence WHERE run_id = 'r1' AND seq = 0 AND log_no = 1"
                " AND evidence_id = '" +
                id("evidence").text() + "'"),
            odd + "7");
  EXPECT_EQ(ask("SELECT relation FROM evidence_link WHERE claim_id = '" + id("claim").text() + "' AND evidence_id = '" +
                id("evidence").text() + "' AND seq = 0 AND log_no = 1"),
            "supports");
}

TEST_P(AppendConnectionTest, AWriterWhoseEpochHasPassedStoresNothing) {
  ASSERT_EQ(commit(events()).outcome, CommitOutcome::committed);
  run_sql(uri_, "UPDATE log_head SET epoch = epoch + 1");
  EXPECT_EQ(commit(events()).outcome, CommitOutcome::fenced);
  EXPECT_EQ(stored(), std::to_string(GetParam()));
  EXPECT_TRUE(appending_.last_row());  // the connection is still usable
}

TEST_P(AppendConnectionTest, ATakeOverThatIsUnderWayIsWaitedForAndFences) {
  pqxx::connection other(uri_);
  pqxx::work taking(other);
  taking.exec("UPDATE log_head SET epoch = epoch + 1");
  auto result = std::async(std::launch::async, [this] { return commit(events()); });
  await_waiting("1");
  taking.commit();
  EXPECT_EQ(result.get().outcome, CommitOutcome::fenced);
  EXPECT_EQ(stored(), "0");
}

TEST_P(AppendConnectionTest, ATakeOverWaitsForTheBatchThatIsUnderWay) {
  pqxx::connection other(uri_);
  pqxx::work holding(other);
  holding.exec("LOCK TABLE event IN SHARE MODE");  // blocks the batch between its fence and its rows
  auto result = std::async(std::launch::async, [this] { return commit(events()); });
  await_waiting("1");
  auto taken = std::async(std::launch::async, [this] {
    AppendConnection next(uri_, 1, make_uuid_v8("another writer"));
    return next.connect(10s).ok() && next.take_over(std::nullopt).ok() ? next.last_row()->seq : -2;
  });
  await_waiting("2");
  holding.abort();
  EXPECT_EQ(result.get().outcome, CommitOutcome::committed);
  EXPECT_EQ(taken.get(), next_seq_ - 1);  // the take-over finished only after the batch was committed and visible
  EXPECT_EQ(commit(events()).outcome, CommitOutcome::fenced);
}

TEST_P(AppendConnectionTest, ARowThatIsRefusedTakesItsBatchWithIt) {
  ASSERT_EQ(commit(events()).outcome, CommitOutcome::committed);
  auto batch = events();
  auto repeated = std::make_shared<events::Event>(*batch.back());
  repeated->event_id = make_uuid_v8("event 0");
  batch.back() = repeated;
  const CommitResult result = commit(batch);
  EXPECT_EQ(result.outcome, CommitOutcome::refused);
  EXPECT_EQ(result.sqlstate, "23505");
  EXPECT_EQ(stored(), std::to_string(GetParam()));
  next_seq_ -= static_cast<std::int64_t>(GetParam());
  EXPECT_EQ(commit(events()).outcome, CommitOutcome::committed);
}

TEST_P(AppendConnectionTest, ARefusedRowBesideTheEventsTakesThemWithIt) {
  const EvidenceLinkRow dangling{make_uuid_v8("no claim"), "r1", make_uuid_v8("no evidence"), "supports", 0};
  const CommitResult result = commit(events(), {dangling});
  EXPECT_EQ(result.outcome, CommitOutcome::refused);
  EXPECT_EQ(result.sqlstate, "23503");
  EXPECT_EQ(stored(), "0");
}

// A foreign trigger skips the row without an error: the daemon must compare the number of stored rows with the number
// sent.
TEST_P(AppendConnectionTest, ARowThatPostgresLeavesOutTakesItsBatchWithIt) {
  run_sql(uri_, "CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'");
  const ClaimRow claim{make_uuid_v8("claim"), "r1", std::nullopt, "text", "[]", "open", noon, 0};
  ArtifactRow artifact{make_uuid_v8("artifact"), "r1", "main", "r1/a", sha256("a"), "text/plain", 1, noon};
  artifact.seq = 0;
  const std::string last = std::to_string(GetParam() - 1);
  for (const auto& [table, when] :
       std::vector<std::pair<std::string, std::string>>{{"event", ""},
                                                        {"event_1_0", ""},
                                                        {"event_1_0", "WHEN (new.seq = " + last + ")"},
                                                        {"claim", ""},
                                                        {"artifact", ""}}) {
    SCOPED_TRACE(table + when);
    run_sql(uri_, "CREATE TRIGGER leave_out BEFORE INSERT ON " + table + " FOR EACH ROW " + when +
                      " EXECUTE FUNCTION leave_out()");
    const CommitResult result = commit(events(), {claim, artifact});
    EXPECT_EQ(result.outcome, CommitOutcome::rows_lost) << result.message;
    EXPECT_NE(result.message.find("rows of the table " + table.substr(0, table.find('_'))), std::string::npos)
        << result.message;
    EXPECT_EQ(stored(), "0");
    EXPECT_EQ(ask_sql(uri_, "SELECT count(*) FROM claim"), "0");
    run_sql(uri_, "DROP TRIGGER leave_out ON " + table);
    next_seq_ = 0;
  }
  EXPECT_EQ(commit(events(), {claim, artifact}).outcome, CommitOutcome::committed);
}

TEST_P(AppendConnectionTest, AnotherRefusalMayBeTriedAgain) {
  const auto change = [&](const std::string& right) {
    run_sql(uri_, "DO $$ BEGIN EXECUTE format('" + right + " %I', muniment_role('writer')); END $$");
  };
  change("REVOKE INSERT ON event FROM");
  const CommitResult result = commit(events());
  EXPECT_EQ(result.outcome, CommitOutcome::rolled_back);
  EXPECT_EQ(result.sqlstate, "42501");
  change("GRANT INSERT ON event TO");
  next_seq_ = 0;
  EXPECT_EQ(commit(events()).outcome, CommitOutcome::committed);
}

TEST_P(AppendConnectionTest, SilenceUntilTheDeadlineIsDoubt) {
  pqxx::connection other(uri_);
  pqxx::work holding(other);
  holding.exec("LOCK TABLE event");
  const CommitResult result = commit(events(), {}, 100ms);
  EXPECT_EQ(result.outcome, CommitOutcome::unknown);
  EXPECT_EQ(result.message, "Postgres does not answer");
}

TEST_P(AppendConnectionTest, AServerThatGoesAwayLeavesDoubt) {
  pqxx::connection other(uri_);
  pqxx::work holding(other);
  holding.exec("LOCK TABLE event");
  auto result = std::async(std::launch::async, [this] { return commit(events()); });
  await_waiting("1");
  holding.exec(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()");
  EXPECT_EQ(result.get().outcome, CommitOutcome::unknown);
  next_seq_ = 0;
  EXPECT_EQ(commit(events()).outcome, CommitOutcome::unknown);  // until the connection is replaced
  holding.abort();
  ASSERT_TRUE(appending_.connect(10s));
  next_seq_ = 0;
  EXPECT_EQ(commit(events()).outcome, CommitOutcome::committed);
}

}  // namespace
}  // namespace muniment::store
