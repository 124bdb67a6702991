// Tests of reading runs from the log, the rows beside the events, and broken connections.
#include <chrono>
#include <pqxx/pqxx>
#include <thread>

#include "support/reader_fixture.hpp"

namespace muniment::store::reader_test {
namespace {

TEST_F(TwoRuns, ALoadedRunStandsWhereItsLastEventDoes) {
  auto loaded = reader_.load_run("r2");
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_NE(*loaded, nullptr);
  const store::Run& loaded_run = **loaded;
  EXPECT_EQ(loaded_run.run_id, "r2");
  EXPECT_EQ(loaded_run.head.run_no, 2);
  EXPECT_EQ(loaded_run.head.run_seq, 5);
  EXPECT_EQ(loaded_run.head.run_hash, sha256("10"));
  EXPECT_EQ(loaded_run.head.status, RunStatus::open);
  EXPECT_EQ(loaded_run.ids_complete_from, 0);
  EXPECT_EQ(loaded_run.next_run_seq(), 5);
  const RunView view = loaded_run.view();
  EXPECT_EQ(view.owner, "uid:1002");
  EXPECT_EQ(view.parent, "r0");
  EXPECT_EQ(view.first_seq, 2);
  EXPECT_FALSE(view.halt);
  EXPECT_EQ(*reader_.load_run("nobody"), nullptr);
  EXPECT_EQ(*reader_.load_run("R2"), nullptr);
}

TEST_F(TwoRuns, TheLogsOwnRunIsLoadedByItsReservedName) {
  auto loaded = reader_.load_run("_log");
  ASSERT_TRUE(loaded && *loaded);
  EXPECT_EQ((*loaded)->head.run_no, 0);
  EXPECT_EQ((*loaded)->head.run_seq, 1);
  EXPECT_EQ((*loaded)->head.status, RunStatus::open);
}

TEST_F(TwoRuns, AHaltedRunIsHaltedWhateverTheDerivedTableSays) {
  run("INSERT INTO run (log_no, run_no, run_id, first_seq, status, origin, owner, agent, started_at) "
      "VALUES (1, 1, 'r1', 1, 'open', 2, 'uid:1001', 'tester', now())");
  add(1, 5, "run.halted", R"({"code": "SYSTEM_ERROR", "reason": "artifact missing", "pointer": "artifact://r1/a"})");
  add(1, 6, "snapshot.taken");
  auto loaded = reader_.load_run("r1");
  ASSERT_TRUE(loaded && *loaded);
  EXPECT_EQ((*loaded)->head.status, RunStatus::halted);
  EXPECT_EQ((*loaded)->head.run_seq, 7);
  const RunView view = (*loaded)->view();
  ASSERT_TRUE(view.halt);
  EXPECT_EQ(view.halt->pointer, "artifact://r1/a");
  EXPECT_EQ(view.halt->seq, 11);
  auto row = reader_.run("r1");
  ASSERT_TRUE(row && *row) << row.error().message;
  EXPECT_EQ((*row)->status, "halted");
  EXPECT_NE((*row)->halt->find("\"seq\":11"), std::string::npos) << *(*row)->halt;

  add(1, 7, "run.resumed");
  loaded = reader_.load_run("r1");
  ASSERT_TRUE(loaded && *loaded);
  EXPECT_EQ((*loaded)->head.status, RunStatus::open);
  EXPECT_FALSE((*loaded)->view().halt);
}

TEST_F(TwoRuns, ARunThatNoFollowerHasSeenIsReadFromTheLog) {
  add(1, 5, "run.annotated", R"({"labels": {"team": "b", "new": "x"}})");
  add(1, 6, "run.ended", R"({"outcome": "success"})");
  for (auto row : {reader_.run("r1"), reader_.run_by_no(1)}) {
    ASSERT_TRUE(row) << row.error().message;
    ASSERT_TRUE(*row);
    EXPECT_EQ((*row)->run_id, "r1");
    EXPECT_EQ((*row)->agent, "tester");
    EXPECT_EQ((*row)->goal, "to test");
    EXPECT_EQ((*row)->parent, "r0");
    EXPECT_EQ((*row)->status, "ended");
    EXPECT_EQ((*row)->outcome, "success");
    EXPECT_EQ((*row)->ended_at, at(12));
    EXPECT_EQ((*row)->labels, R"({"team":"b","new":"x"})");
  }
  auto none = reader_.run("r9");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST_F(ReaderTest, RunsAreListedNewestFirstAndByEveryFilter) {
  for (int n = 1; n <= 5; ++n) {
    run("INSERT INTO run (log_no, run_no, run_id, first_seq, status, origin, owner, agent, labels, parent, "
        "external_id, started_at) VALUES (1, " +
        std::to_string(n) + ", 'r" + std::to_string(n) + "', " + std::to_string(n) + ", '" +
        (n % 2 == 0 ? "open" : "ended") + "', 2, 'uid:" + std::to_string(n) + "', 'agent" + std::to_string(n / 3) +
        "', '{\"n\": " + std::to_string(n) + "}', 'p" + std::to_string(n / 4) + "', 'x" + std::to_string(n) + "', '" +
        format_time(at(n)) + "')");
  }
  const auto listed = [&](const RunFilter& filter, std::size_t limit = 10) {
    auto rows = reader_.runs(filter, limit);
    EXPECT_TRUE(rows) << rows.error().message;
    std::vector<std::int64_t> numbers;
    for (const RunRow& row : *rows) numbers.push_back(row.run_no);
    return numbers;
  };
  EXPECT_EQ(listed({}), (Seqs{5, 4, 3, 2, 1}));
  EXPECT_EQ(listed({}, 2), (Seqs{5, 4}));
  RunFilter filter;
  filter.before_run_no = 4;
  EXPECT_EQ(listed(filter), (Seqs{3, 2, 1}));
  filter.status = "ended";
  EXPECT_EQ(listed(filter), (Seqs{3, 1}));
  filter = {};
  filter.agent = "agent0";
  filter.since = at(2);
  EXPECT_EQ(listed(filter), (Seqs{2}));
  filter = {};
  filter.labels = R"({"n": 3})";
  EXPECT_EQ(listed(filter), (Seqs{3}));
  filter = {};
  filter.parent = "p1";
  filter.owner = "uid:4";
  EXPECT_EQ(listed(filter), (Seqs{4}));
  filter = {};
  filter.external_id = "x5";
  EXPECT_EQ(listed(filter), (Seqs{5}));
}

TEST_F(ReaderTest, AnotherLogInTheSameDatabaseIsNotSeen) {
  run("INSERT INTO log_head (log_no, log_id) VALUES (2, gen_random_uuid()); SELECT make_event_partition(2::smallint, 0)");
  add(0, 0, "log.started");
  start_run(1);
  Reader other({uri_, 2});
  EXPECT_EQ(*other.log_size(), 0);
  EXPECT_EQ(*other.load_run("r1"), nullptr);
  auto event = other.event_at(0);
  ASSERT_TRUE(event);
  EXPECT_FALSE(*event);
}

TEST_F(ReaderTest, ArtifactsArePagedByIdAndFoundByHash) {
  for (int n = 1; n <= 4; ++n) {
    run("INSERT INTO artifact VALUES ('00000000-0000-7000-8000-00000000000" + std::to_string(n) + "', 'r1', '" +
        (n < 4 ? "main" : "s2") + "', 'runs/r1/" + std::to_string(n) + "', encode(sha256('" + std::to_string(n) +
        "'), 'hex'), 'text/plain', 5, '" + format_time(at(n)) + "', '{\"k\": 1}', 1, " + std::to_string(n) + ")");
  }
  auto first = reader_.artifacts("r1", {}, {}, 2);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(first->size(), 2u);
  auto rest = reader_.artifacts("r1", {}, first->back().artifact_id, 10);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->size(), 2u);
  auto step = reader_.artifacts("r1", "s2", {}, 10);
  ASSERT_TRUE(step);
  ASSERT_EQ(step->size(), 1u);
  EXPECT_EQ(step->front().hash, sha256("4"));
  EXPECT_EQ(step->front().created_at, at(4));
  EXPECT_EQ(step->front().metadata, "{\"k\": 1}");
  auto found = reader_.artifact_with_hash("r1", "main", sha256("3"));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->seq, 3);
  auto elsewhere = reader_.artifact_with_hash("r1", "s2", sha256("3"));
  ASSERT_TRUE(elsewhere);
  EXPECT_FALSE(*elsewhere);
  auto by_id = reader_.artifact((*found)->artifact_id);
  ASSERT_TRUE(by_id && *by_id);
  EXPECT_EQ((*by_id)->path, "runs/r1/3");
}

TEST_F(ReaderTest, SnapshotsAndManifestsComeBack) {
  run("INSERT INTO snapshot SELECT 1, 1, n * 10, n, n * 10 + 1, sha256('s'), sha256('h'), sha256('t'), 2, '{}', NULL, "
      "'asked', '" +
      format_time(at(0)) + "' FROM generate_series(1, 4) n");
  auto newest = reader_.snapshots(1, {}, 2);
  ASSERT_TRUE(newest) << newest.error().message;
  ASSERT_EQ(newest->size(), 2u);
  EXPECT_EQ(newest->front().seq, 40);
  EXPECT_EQ(newest->front().state, "{}");
  auto older = reader_.snapshots(1, 29, 1);
  ASSERT_TRUE(older);
  ASSERT_EQ(older->size(), 1u);
  EXPECT_EQ(older->front().seq, 20);
  EXPECT_EQ(older->front().event_seq, 21);
  run("INSERT INTO manifest VALUES ('00000000-0000-7000-8000-000000000001', 1, 5, 'r1', NULL, sha256('s'), sha256('h'), "
      "9, '{ \"a\" : 1}', now())");
  auto manifest = reader_.manifest(*parse_uuid("00000000-0000-7000-8000-000000000001"));
  ASSERT_TRUE(manifest && *manifest);
  EXPECT_EQ((*manifest)->manifest, "{ \"a\" : 1}");
  EXPECT_FALSE((*manifest)->base_id);
}

TEST_F(ReaderTest, TheLedgerIsPagedInTheOrderOfTheLog) {
  for (int n = 1; n <= 3; ++n) {
    const std::string id = "00000000-0000-7000-8000-00000000000" + std::to_string(4 - n);
    run("INSERT INTO claim VALUES ('" + id + "', 1, " + std::to_string(n) +
        ", 'r1', NULL, 'it''s so', "
        "'[\"run://r1\"]', 'open', now())");
    run("INSERT INTO evidence VALUES ('" + id + "', 1, " + std::to_string(n) + ", 'r" + std::to_string(n % 2) +
        "', 'test', '{}', NULL, encode(sha256('c'), 'hex'), NULL, 'uid:1', now())");
  }
  run("INSERT INTO pointer VALUES (1, 'artifact://r1/a', 'claim', '00000000-0000-7000-8000-000000000001', 'r1', 3)");
  auto first = reader_.claims("r1", {}, 2);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(first->size(), 2u);
  EXPECT_EQ(first->front().seq, 1);
  EXPECT_EQ(first->front().text, "it's so");
  auto rest = reader_.claims("r1", first->back().claim_id, 10);
  ASSERT_TRUE(rest);
  ASSERT_EQ(rest->size(), 1u);
  EXPECT_EQ(rest->front().seq, 3);
  auto evidence = reader_.evidence("r1", "test", -1, 10);
  ASSERT_TRUE(evidence) << evidence.error().message;
  EXPECT_EQ(evidence->size(), 2u);
  auto everywhere = reader_.evidence({}, {}, evidence->front().seq, 10);
  ASSERT_TRUE(everywhere);
  EXPECT_EQ(everywhere->size(), 2u);
  auto needed = reader_.needed({"artifact://r1/a", "artifact://r1/b"});
  ASSERT_TRUE(needed) << needed.error().message;
  EXPECT_EQ(*needed, std::set<std::string>{"artifact://r1/a"});
}

TEST_F(ReaderTest, FollowersStartAtZero) {
  EXPECT_EQ(*reader_.follower_position("run"), 0);
  run("INSERT INTO follower (log_no, name, next_seq) VALUES (1, 'run', 17), (1, 'pointer', 4), (2, 'run', 9)");
  EXPECT_EQ(*reader_.follower_position("run"), 17);
  EXPECT_EQ(reader_.follower_positions()->size(), 2u);
}

TEST_F(ReaderTest, ANulByteIsTheCallersErrorAndNotACutName) {
  add(0, 0, "log.started");
  start_run(1);
  auto cut = reader_.load_run(std::string_view("r1\0x", 4));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Errc::invalid_argument);
}

TEST_F(ReaderTest, QuotesAndBackslashesInAValueStayInTheValue) {
  EXPECT_EQ(*reader_.load_run("r1' OR '1'='1"), nullptr);
  EXPECT_EQ(*reader_.load_run("r1\\"), nullptr);
}

TEST_F(ReaderTest, AConnectionThatTheServerEndedIsOpenedAgain) {
  ASSERT_EQ(*reader_.log_size(), 0);
  run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()");
  auto size = reader_.log_size();
  EXPECT_TRUE(size) << size.error().message;
}

TEST_F(ReaderTest, ASecondThreadEndsAReadThatHangs) {
  ASSERT_EQ(*reader_.log_size(), 0);
  // The lock blocks the read until the connection is cut.
  pqxx::connection holder(uri_);
  pqxx::work holding(holder);
  holding.exec("LOCK TABLE follower IN ACCESS EXCLUSIVE MODE");
  std::thread interrupter([&] {
    while (test::ask_sql(uri_, "SELECT count(*) FROM pg_locks WHERE relation = 'follower'::regclass AND NOT granted") !=
           "1") {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    reader_.connection().interrupt();
  });
  auto position = reader_.follower_position("run");  // returns while the lock is held
  holding.abort();
  ASSERT_FALSE(position);
  EXPECT_EQ(position.error().code, Errc::unavailable);
  interrupter.join();
  EXPECT_TRUE(reader_.follower_position("run")) << "and the reader is whole again";
}

TEST(Reader, WithoutAServerIsUnavailable) {
  Reader reader({"postgresql://nobody@/nothing?host=%2Fnonexistent", 1});
  auto size = reader.log_size();
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, Errc::unavailable);
}

}  // namespace
}  // namespace muniment::store::reader_test
