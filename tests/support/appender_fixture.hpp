// A log with an append thread, and methods that make its Postgres reject, block or disconnect.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <pqxx/pqxx>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/log_fixture.hpp"

namespace muniment::test {

class AppenderTest : public LogFixture {
 protected:
  void SetUp() override {
    LogFixture::SetUp();
    admin_ = empty_database();  // for commands that the log's own database does not allow
    name_ = ask_sql(uri, "SELECT current_database()");
    run_ = runs->find(log_run_id);
  }

  store::AppendRequest request(std::string_view type, std::string body = "{}") {
    store::AppendRequest made;
    made.actor = "uid:1000";
    events::NewEvent event;
    event.type = type;
    event.body = std::move(body);
    event.event_id = make_uuid_v7(clock.now());
    event.event_id_is_ours = true;
    events::seal(event);
    made.events.push_back({run_, std::move(event)});
    return made;
  }

  // A request that Postgres rejects because of a row beside its event.
  store::AppendRequest dangling() {
    store::AppendRequest made = request("x.test.dangling");
    made.rows.push_back(
        {0, store::EvidenceLinkRow{make_uuid_v8("no claim"), "_log", make_uuid_v8("no evidence"), "supports", 0}});
    return made;
  }

  using Answer = Result<std::vector<events::Receipt>>;
  std::future<Answer> submit(store::AppendRequest made) {
    auto answered = std::make_shared<std::promise<Answer>>();
    auto answer = answered->get_future();
    made.done = [answered](Answer receipts) { answered->set_value(std::move(receipts)); };
    if (Status submitted = appender->submit(std::move(made)); !submitted)
      answered->set_value(std::move(submitted).error());
    return answer;
  }

  // Runs `action` in the second insert of an event of this type, which follows the rejection of its batch.
  void at_second_pass(const std::string& type, const std::string& action) {
    run_sql(uri,
            "CREATE SEQUENCE passes; GRANT ALL ON SEQUENCE passes TO PUBLIC;"
            "CREATE FUNCTION at_second_pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            "  IF nextval('passes') = 2 THEN " +
                action +
                " END IF; RETURN new; END $$;"
                "CREATE TRIGGER at_second_pass BEFORE INSERT ON event FOR EACH ROW WHEN (new.type = '" +
                type + "') EXECUTE FUNCTION at_second_pass()");
  }

  // Appends the requests as one batch: submits them while the previous batch waits for a lock.
  std::vector<std::future<Answer>> in_one_batch(std::vector<store::AppendRequest> requests) {
    pqxx::connection other(uri);
    pqxx::work holding(other);
    holding.exec("LOCK TABLE event IN SHARE MODE");
    auto first = submit(request("x.test.first"));
    await_sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '" + name_ + "'",
              "1");
    std::vector<std::future<Answer>> answers;
    for (store::AppendRequest& made : requests) answers.push_back(submit(std::move(made)));
    holding.abort();
    EXPECT_TRUE(first.get());
    return answers;
  }

  void await_sql(const std::string& sql, const std::string& wanted) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ask_sql(admin_, sql) != wanted) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << sql;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  void await(const std::function<bool()>& condition, const char* what) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << what;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  void set(const std::string& setting, const std::string& value) {
    run_sql(admin_, "ALTER SYSTEM SET " + setting + " = '" + value + "'");
    run_sql(admin_, "SELECT pg_reload_conf()");
    await_sql("SHOW " + setting, value);
  }

  // Breaks the append thread's connection, and prevents a new one until `lets_connect`.
  void cut(
      const std::string& which =
          "EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.classid = 1836412521)") {
    lets_connect(false);
    run_sql(admin_,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity a WHERE datname = '" + name_ + "' AND " + which);
  }

  // The condition for a backend that waits for the test's lock on the log's table.
  static constexpr const char* waits_for_lock = "wait_event_type = 'Lock'";
  void await_lock_waiter() {
    await_sql("SELECT count(*) FROM pg_stat_activity WHERE datname = '" + name_ + "' AND " + waits_for_lock, "1");
  }
  void cancel_lock_waiter() {
    await_lock_waiter();
    run_sql(admin_, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = '" + name_ + "' AND " +
                        waits_for_lock);
  }
  // Starts an outage that ends after one request was rejected, while the log's table is locked. Returns the answer to
  // the request that was sent when the outage began.
  std::future<Answer> outage_of_one(pqxx::work& holding) {
    EXPECT_TRUE(submit(request("x.test.a")).get());
    holding.exec("LOCK TABLE event_1_0 IN SHARE MODE");  // opening a connection does not need this lock
    cut();
    auto in_doubt = submit(request("x.test.b"));
    await([&] { return !appender->status().away.empty(); }, "Postgres is away");
    EXPECT_FALSE(submit(request("x.test.c")).get());
    lets_connect(true);
    return in_doubt;
  }
  std::string outages() {
    return ask_sql(
        uri,
        "SELECT coalesce(string_agg(body ->> 'requests_refused', ' ' ORDER BY seq), '') FROM event WHERE type = 'log.resumed'");
  }

  void lets_connect(bool allowed) {
    run_sql(admin_, "ALTER DATABASE " + name_ + " ALLOW_CONNECTIONS " + (allowed ? "true" : "false"));
  }

  // Expects each seq from 0 to the last in the table and in the daemon's memory.
  void expect_no_gap() {
    EXPECT_EQ(ask_sql(uri, "SELECT count(*) = max(seq) + 1 FROM event"), "t")
        << ask_sql(uri, "SELECT string_agg(seq::text, ' ' ORDER BY seq) FROM event");
  }

  bool is_there(const Uuid& event_id) {
    return ask_sql(uri, "SELECT count(*) FROM event WHERE event_id = '" + event_id.text() + "'") == "1";
  }

  std::string admin_, name_;
  std::shared_ptr<store::Run> run_;
};

}  // namespace muniment::test
