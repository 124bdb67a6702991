// Tests of the append thread under errors: every answer about a request is correct, and the sequence numbers have no
// gaps.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <pqxx/pqxx>
#include <string>
#include <thread>
#include <vector>

#include "base/json/json.hpp"
#include "store/postgres/partitions.hpp"
#include "support/appender_fixture.hpp"

namespace muniment::store {
namespace {

using namespace std::chrono_literals;
using test::AppenderTest;
using test::ask_sql;
using test::run_sql;

TEST_F(AppenderTest, AStopBetweenARefusedBatchAndItsRequestsLeavesNoGap) {
  at_second_pass("x.test.wait", "PERFORM pg_advisory_xact_lock(77);");
  pqxx::connection other(uri);
  pqxx::nontransaction(other).exec("SELECT pg_advisory_lock(77)");
  std::vector<AppendRequest> requests;
  requests.push_back(dangling());
  requests.push_back(request("x.test.wait"));
  std::vector<Uuid> ids;
  for (int i = 0; i < 300; ++i) {
    requests.push_back(request("x.test.after"));
    ids.push_back(requests.back().events.front().event.event_id);
  }
  auto answers = in_one_batch(std::move(requests));
  await_sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = '" + name_ + "'", "1");
  // Cuts the connection and refuses new ones for a moment; meanwhile the daemon is stopped.
  lets_connect(false);
  run_sql(admin_,
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = '" +
              name_ + "'");
  // Otherwise, the request on the next connection would call it too.
  pqxx::nontransaction(other).exec("DROP TRIGGER at_second_pass ON event");
  await([&] { return !appender->status().away.empty(); }, "Postgres is away");
  auto stopped = std::async(std::launch::async, [&] { appender->stop(); });
  std::this_thread::sleep_for(100ms);
  lets_connect(true);
  stopped.get();
  expect_no_gap();
  // Every request gets an answer, and every answer is correct.
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_EQ(answers[i].wait_for(0s), std::future_status::ready) << i;
    const Answer answer = answers[i].get();
    if (i < 2 || (!answer && answer.error().outcome == "unknown")) continue;
    EXPECT_EQ(answer.ok(), is_there(ids[i - 2])) << i;
  }
}

TEST_F(AppenderTest, ARequestThatFailsForAPassingReasonIsNotTheCallersFault) {
  at_second_pass("x.test.full", "RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full';");
  std::vector<AppendRequest> requests;
  requests.push_back(dangling());
  requests.push_back(request("x.test.full"));
  requests.push_back(request("x.test.after"));
  auto answers = in_one_batch(std::move(requests));
  const Answer refused = answers[0].get(), full = answers[1].get(), after = answers[2].get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Errc::unavailable) << full.error().message;
  EXPECT_TRUE(after) << after.error().message;
  expect_no_gap();
}

TEST_F(AppenderTest, AnOutageIsRecordedHoweverOftenPostgresRefusesToWriteIt) {
  pqxx::connection other(uri);
  pqxx::work holding(other);
  auto in_doubt = outage_of_one(holding);
  cancel_lock_waiter();
  const Answer refused = in_doubt.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unavailable) << refused.error().message;
  for (int i = 0; i < 2; ++i) {  // the retry does not wait for another append
    std::this_thread::sleep_for(100ms);
    cancel_lock_waiter();
  }
  EXPECT_EQ(outages(), "");
  holding.abort();
  await([&] { return outages() == "1"; }, "the outage is recorded");
  EXPECT_TRUE(submit(request("x.test.d")).get());
  EXPECT_EQ(outages(), "1");
  expect_no_gap();
}

TEST_F(AppenderTest, AStopWritesWhatTheLogIsOwed) {
  pqxx::connection other(uri);
  pqxx::work holding(other);
  auto in_doubt = outage_of_one(holding);
  cancel_lock_waiter();
  EXPECT_FALSE(in_doubt.get());
  holding.abort();
  appender->stop();  // before the next retry is due
  EXPECT_EQ(outages(), "1");
  expect_no_gap();
}

TEST_F(AppenderTest, TwoOutagesAreTwoEventsEachWithItsOwnNumbers) {
  pqxx::connection other(uri);
  pqxx::work holding(other);
  auto in_doubt = outage_of_one(holding);
  await_lock_waiter();
  cut(waits_for_lock);  // before the first outage could be recorded
  await([&] { return !appender->status().away.empty(); }, "Postgres is away again");
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(submit(request("x.test.c")).get());
  holding.abort();
  lets_connect(true);
  const Answer taken = in_doubt.get();
  EXPECT_TRUE(taken) << taken.error().message;
  await([&] { return outages() == "1 2"; }, "both are recorded");
  expect_no_gap();
}

TEST_F(AppenderTest, AnEventOfItsOwnThatPostgresRefusesForItsDataHoldsUpNothing) {
  ASSERT_TRUE(submit(request("x.test.a")).get());
  run_sql(uri, "ALTER TABLE event ADD CONSTRAINT no_outage CHECK (type <> 'log.resumed')");
  cut();
  auto in_doubt = submit(request("x.test.b"));
  await([&] { return !appender->status().away.empty(); }, "Postgres is away");
  lets_connect(true);
  EXPECT_TRUE(in_doubt.get());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(submit(request("x.test.c")).get());
  EXPECT_EQ(outages(), "");
  expect_no_gap();
}

TEST_F(AppenderTest, ATimeHasNotPassedWhileWhatWasNumberedByThenIsInFlight) {
  const auto in = [](std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; };
  pqxx::connection other(uri);
  pqxx::work holding(other);
  holding.exec("LOCK TABLE event IN SHARE MODE");
  const Time before = clock.now();
  std::this_thread::sleep_for(2ms);
  auto waiting = submit(request("x.test.a"));
  await_lock_waiter();
  const Time meanwhile = clock.now();
  std::this_thread::sleep_for(2ms);
  const auto decided = reader->has_passed(before, clock, *tail, in(1s));
  ASSERT_TRUE(decided) << decided.error().message;
  EXPECT_TRUE(*decided);
  const auto undecided = reader->has_passed(meanwhile, clock, *tail, in(50ms));
  ASSERT_FALSE(undecided);
  EXPECT_EQ(undecided.error().code, Errc::unavailable);
  const auto to_come = reader->has_passed(Time{meanwhile.micros + 3'600'000'000}, clock, *tail, in(50ms));
  ASSERT_TRUE(to_come) << to_come.error().message;
  EXPECT_FALSE(*to_come);
  cancel_lock_waiter();  // the append fails for certain, and is not retried
  EXPECT_FALSE(waiting.get());
  const auto given_back = reader->has_passed(meanwhile, clock, *tail, in(1s));
  ASSERT_TRUE(given_back) << given_back.error().message;
  EXPECT_TRUE(*given_back);
  holding.abort();
  const Answer taken = submit(request("x.test.b")).get();
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_TRUE(tail->decided(taken->front().recorded_at, in(1s)));
  EXPECT_EQ(*reader->seq_as_of(taken->front().recorded_at), taken->front().seq);
}

constexpr const char* foreign_row =
    "INSERT INTO event SELECT 1, (SELECT max(seq) FROM event) + %, 0, (SELECT max(run_seq) FROM event WHERE run_no = 0) + %, now(), NULL, 2, "
    "'x.foreign', 1, NULL, 'somebody', gen_random_uuid(), sha256('h'), sha256('s'), '{}', sha256('r')";

std::string foreign(int ahead) {
  std::string sql = foreign_row;
  for (std::size_t at; (at = sql.find('%')) != std::string::npos;) sql.replace(at, 1, std::to_string(ahead));
  return sql;
}

TEST_F(AppenderTest, ARowThatSomebodyElseWroteLatchesTheLog) {
  ASSERT_TRUE(submit(request("x.test.a")).get());
  run_sql(uri, foreign(1));
  const std::string before = ask_sql(uri, "SELECT count(*) FROM event");
  for (int i = 0; i < 3; ++i) {
    const Answer answer = submit(request("x.test.b")).get();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Errc::system_error) << answer.error().message;
    EXPECT_NE(answer.error().message.find("another_writer"), std::string::npos) << answer.error().message;
  }
  EXPECT_NE(appender->status().refused.find("another_writer"), std::string::npos);
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM event"), before);
}

TEST_F(AppenderTest, ARowFurtherAheadIsFoundWhenTheLogComesToIt) {
  ASSERT_TRUE(submit(request("x.test.a")).get());
  run_sql(uri, foreign(3));
  EXPECT_TRUE(submit(request("x.test.b")).get());
  EXPECT_TRUE(submit(request("x.test.c")).get());
  const Answer answer = submit(request("x.test.d")).get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::system_error) << answer.error().message;
  EXPECT_NE(appender->status().refused.find("another_writer"), std::string::npos);
}

// A request is in doubt while another writer has appended a row: the answer about the request is correct, and the log
// refuses further appends.
TEST_F(AppenderTest, ARowThatIsFoundInDoubtLatchesToo) {
  ASSERT_TRUE(submit(request("x.test.a")).get());
  pqxx::connection other(uri);
  auto holding = std::make_unique<pqxx::work>(other);
  holding->exec("LOCK TABLE event IN SHARE MODE");
  AppendRequest made = request("x.test.b");
  const Uuid id = made.events.front().event.event_id;
  auto answer = submit(std::move(made));
  await_sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '" + name_ + "'", "1");
  lets_connect(false);
  run_sql(admin_,
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '" +
              name_ + "'");
  holding->exec(foreign(1));
  holding->commit();
  lets_connect(true);
  const Answer given = answer.get();
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, Errc::system_error) << given.error().message;
  EXPECT_EQ(given.error().outcome, "");
  EXPECT_FALSE(is_there(id));
  EXPECT_NE(appender->status().refused.find("another_writer"), std::string::npos);
}

TEST_F(AppenderTest, RowsThatPostgresLeavesOutAreNotAcknowledgedAndLatchTheLog) {
  ASSERT_TRUE(submit(request("x.test.a")).get());
  const std::string before = ask_sql(uri, "SELECT count(*) FROM event");
  run_sql(
      uri,
      "CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
      "CREATE TRIGGER leave_out BEFORE INSERT ON event FOR EACH ROW WHEN (new.type = 'x.test.out') EXECUTE FUNCTION leave_out()");
  std::vector<AppendRequest> requests;
  for (const char* type : {"x.test.in", "x.test.out", "x.test.in"}) requests.push_back(request(type));
  for (auto& answer : in_one_batch(std::move(requests))) {
    const Answer given = answer.get();
    ASSERT_FALSE(given);
    EXPECT_EQ(given.error().code, Errc::system_error) << given.error().message;
    EXPECT_EQ(given.error().outcome, "");
    EXPECT_NE(given.error().message.find("tables_changed"), std::string::npos) << given.error().message;
  }
  EXPECT_EQ(
      ask_sql(uri, "SELECT count(*) FROM event WHERE type LIKE 'x.test.%' AND type IN ('x.test.in', 'x.test.out')"),
      "0");
  EXPECT_FALSE(submit(request("x.test.in")).get());
  EXPECT_NE(appender->status().refused.find("tables_changed"), std::string::npos);
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM event"),
            std::to_string(std::stoi(before) + 1));  // the event that precedes the batch
}

// Simulates an UPDATE of the daemon that Postgres executes late, after the daemon has abandoned it and raised the epoch
// again.
TEST_F(AppenderTest, ALateRaiseOfItsOwnEpochDoesNotFenceTheDaemon) {
  std::atomic<int> lost{0};
  appender->on_fatal = [&](const Error&) { ++lost; };
  ASSERT_TRUE(submit(request("x.test.a")).get());
  for (int i = 0; i < 3; ++i) {
    run_sql(uri, "UPDATE log_head SET epoch = epoch + 1");
    const Answer answer = submit(request("x.test.b")).get();
    EXPECT_TRUE(answer) << answer.error().message;
  }
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM event WHERE type = 'x.test.b'"), "3");
  expect_no_gap();
}

TEST_F(AppenderTest, AnotherWriterFencesTheDaemonAndNothingIsIn) {
  std::promise<std::string> lost;
  appender->on_fatal = [&](const Error& error) { lost.set_value(error.message); };
  ASSERT_TRUE(submit(request("x.test.a")).get());
  run_sql(uri, "UPDATE log_head SET epoch = epoch + 1, writer = gen_random_uuid()");
  const Answer answer = submit(request("x.test.b")).get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unavailable);
  EXPECT_EQ(answer.error().outcome, "");
  EXPECT_NE(lost.get_future().get().find("fenced"), std::string::npos);
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM event WHERE type = 'x.test.b'"), "0");
  EXPECT_FALSE(submit(request("x.test.c")).get());
}

class StandbyTest : public AppenderTest {
 protected:
  void TearDown() override {
    set("synchronous_standby_names", "");
    AppenderTest::TearDown();
  }
  // Returns a query for the number of sessions of the log's database that wait for a standby.
  std::string waiting() const {
    return "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = '" + name_ + "'";
  }
  void cancel() {
    run_sql(admin_, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = '" +
                        name_ + "'");
  }
};

TEST_F(StandbyTest, ACommitThatNoStandbyConfirmedIsNotAcknowledged) {
  for (const std::size_t events : {1U, 20U}) {  // a pipeline and a COPY
    AppendRequest made = request("x.test.alone");
    while (made.events.size() < events) made.events.push_back(request("x.test.alone").events.front());
    const Uuid id = made.events.back().event.event_id;
    set("synchronous_standby_names", "nobody");
    auto answer = submit(std::move(made));
    await_sql(waiting(), "1");
    cancel();
    await_sql(waiting(), "1");  // the take-over, which also requires a standby's confirmation
    EXPECT_TRUE(is_there(id));
    cancel();
    EXPECT_EQ(answer.wait_for(1s), std::future_status::timeout) << events;
    set("synchronous_standby_names", "");
    const Answer given = answer.get();
    EXPECT_TRUE(given) << given.error().message;
    EXPECT_TRUE(is_there(id));
    expect_no_gap();
  }
}

TEST_F(StandbyTest, ALogIsNotTakenOverWithoutThem) {
  close_log();
  set("synchronous_standby_names", "nobody");
  auto opening = std::async(std::launch::async, [&] {
    AppenderOptions options;
    options.uri = uri;
    Tail other_tail;
    RunDirectory other_runs;
    return Appender::open(options, clock, other_tail, other_runs).ok();
  });
  await_sql(waiting(), "1");
  cancel();
  EXPECT_FALSE(opening.get());
}

class SmallPartitions : public AppenderTest {
 protected:
  SmallPartitions() { partition_bits = limits::partition_bits_min; }
};

TEST_F(SmallPartitions, OneThatNobodyMadeAheadIsMadeWhenItIsNeeded) {
  for (int i = 0; i < 3; ++i) {
    AppendRequest made = request("x.test.a");
    while (made.events.size() < limits::events_per_request_max)
      made.events.push_back(request("x.test.a").events.front());
    const Answer answer = submit(std::move(made)).get();
    EXPECT_TRUE(answer) << answer.error().message;
  }
  expect_no_gap();
}

TEST_F(SmallPartitions, OneThatCannotBeMadeIsNotTheCallersFault) {
  run_sql(
      uri,
      "DO $$ BEGIN EXECUTE format('REVOKE EXECUTE ON FUNCTION make_event_partition(smallint, bigint) FROM %I', muniment_role('writer')); END $$");
  std::optional<Error> refused;
  for (int i = 0; i < 3 && !refused; ++i) {
    AppendRequest made = request("x.test.a");
    while (made.events.size() < limits::events_per_request_max)
      made.events.push_back(request("x.test.a").events.front());
    const Answer answer = submit(std::move(made)).get();
    if (!answer) refused = answer.error();
  }
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, Errc::unavailable) << refused->message;
  expect_no_gap();
}

}  // namespace
}  // namespace muniment::store
