// Tests of the requirements on a database: durable settings, append-only tables, partitions created in advance.
#include "store/postgres/database.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <pqxx/pqxx>
#include <sstream>
#include <thread>

#include "store/postgres/partitions.hpp"
#include "store/read/reader.hpp"
#include "support/postgres_fixture.hpp"

namespace muniment::store {
namespace {

using test::ask_sql;
using test::run_sql;

Status checked(const std::string& uri) {
  Connection connection(uri, DatabaseRole::login);
  return check_settings(connection);
}

TEST(Settings, OfThePrivateServerAreAccepted) {
  const Status status = checked(test::empty_database());
  EXPECT_TRUE(status) << status.error().message;
}

TEST(Settings, OneThatLosesAcknowledgedEventsIsRefusedByName) {
  const std::string uri = test::empty_database();
  for (const std::string setting : {"fsync", "full_page_writes", "synchronous_commit"}) {
    run_sql(uri, "ALTER SYSTEM SET " + setting + " = off");
    run_sql(uri, "SELECT pg_reload_conf()");
    for (int i = 0; i < 500 && ask_sql(uri, "SHOW " + setting) != "off"; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const Status status = checked(uri);
    run_sql(uri, "ALTER SYSTEM RESET " + setting);
    run_sql(uri, "SELECT pg_reload_conf()");
    for (int i = 0; i < 500 && ask_sql(uri, "SHOW " + setting) != "on"; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_FALSE(status) << setting;
    EXPECT_EQ(status.error().code, Errc::conflict);
    EXPECT_NE(status.error().message.find(setting + " is off"), std::string::npos);
    EXPECT_NE(status.error().message.find("ALTER SYSTEM SET " + setting + " = on"), std::string::npos)
        << status.error().message;
  }
  EXPECT_TRUE(checked(uri));
}

TEST(Settings, WhatActsOnRowsThatAreInsertedIsRefusedByName) {
  const std::string uri = test::fresh_database();
  run_sql(uri, "SELECT make_event_partition(1::smallint, 0)");
  EXPECT_TRUE(checked(uri));
  run_sql(uri, "CREATE FUNCTION zz() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'");
  const auto refuses = [&](const std::string& change, const std::string& named, const std::string& fix) {
    run_sql(uri, change);
    const Status status = checked(uri);
    ASSERT_FALSE(status) << change;
    EXPECT_EQ(status.error().code, Errc::conflict);
    EXPECT_NE(status.error().message.find("the " + named + " acts on appended rows"), std::string::npos)
        << status.error().message;
    EXPECT_NE(status.error().message.find(fix), std::string::npos) << status.error().message;
    run_sql(uri, fix);
    EXPECT_TRUE(checked(uri)) << change;
  };
  refuses(
      "CREATE CONSTRAINT TRIGGER zz AFTER INSERT ON event_1_0 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION zz()",
      "trigger zz on event_1_0", "DROP TRIGGER zz ON event_1_0");
  refuses("CREATE TRIGGER \"Z z\" BEFORE INSERT OR UPDATE ON event FOR EACH ROW EXECUTE FUNCTION zz()",
          "trigger \"Z z\" on event", "DROP TRIGGER \"Z z\" ON event");
  refuses("CREATE TRIGGER zz AFTER INSERT ON claim EXECUTE FUNCTION zz()", "trigger zz on claim",
          "DROP TRIGGER zz ON claim");
  refuses("CREATE RULE zz AS ON INSERT TO evidence_link DO INSTEAD NOTHING", "rule zz on evidence_link",
          "DROP RULE zz ON evidence_link");
  run_sql(
      uri,
      "CREATE TRIGGER zz AFTER INSERT ON claim EXECUTE FUNCTION zz(); ALTER TABLE claim DISABLE TRIGGER zz;"
      "CREATE TRIGGER zz AFTER INSERT ON follower EXECUTE FUNCTION zz(); CREATE TRIGGER zz BEFORE DELETE ON event FOR EACH ROW EXECUTE FUNCTION zz()");
  EXPECT_TRUE(checked(uri));
}

TEST(Settings, OneThatWasGivenToTheDatabaseIsMendedThere) {
  const std::string uri = test::empty_database();
  const std::string name = ask_sql(uri, "SELECT current_database()");
  run_sql(uri, "ALTER DATABASE " + name + " SET synchronous_commit = off");
  const Status status = checked(uri);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("ALTER DATABASE \"" + name + "\" RESET synchronous_commit"), std::string::npos)
      << status.error().message;
}

// Expects the statement to be refused by the append-only rule, not by another error.
void expect_refused(const std::string& uri, const std::string& sql) {
  try {
    run_sql(uri, sql);
    ADD_FAILURE() << "accepted: " << sql;
  } catch (const std::exception& failure) {
    EXPECT_NE(std::string(failure.what()).find("is append-only"), std::string::npos) << sql << ": " << failure.what();
  }
}

std::string log_with_one_event() {
  const std::string uri = test::fresh_database();
  run_sql(uri, "INSERT INTO log_head (log_no, log_id) VALUES (1, gen_random_uuid())");
  run_sql(uri, "SELECT make_event_partition(1::smallint, 0)");
  run_sql(uri,
          "INSERT INTO event SELECT 1, 0, 0, 0, now(), NULL, 2, 'log.started', 1, NULL, 'a', "
          "gen_random_uuid(), sha256('h'), sha256('s'), '{}', sha256('r')");
  return uri;
}

TEST(AppendOnly, NoEventIsChangedOrRemovedByWhateverName) {
  const std::string uri = log_with_one_event();
  for (const char* table : {"event", "event_1", "event_1_0"}) {
    expect_refused(uri, std::string("UPDATE ") + table + " SET actor = 'b'");
    expect_refused(uri, std::string("DELETE FROM ") + table);
    expect_refused(uri, std::string("TRUNCATE ") + table);
  }
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM event WHERE actor = 'a'"), "1");
}

TEST(AppendOnly, ALogKeepsItsIdentityAndItsEpochOnlyGrows) {
  const std::string uri = log_with_one_event();
  run_sql(uri, "UPDATE log_head SET epoch = epoch + 1");
  expect_refused(uri, "UPDATE log_head SET epoch = epoch - 1");
  expect_refused(uri, "UPDATE log_head SET log_id = gen_random_uuid()");
  expect_refused(uri, "DELETE FROM log_head");
}

TEST(Partitions, TheCurrentAndTheNextAreMadeOnce) {
  const std::string uri = test::fresh_database();
  Connection connection(uri, DatabaseRole::writer);
  const std::string count = "SELECT count(*) FROM pg_class WHERE relname ~ '^event_1_[0-9]+$'";
  ASSERT_TRUE(ensure_partitions(connection, 1, 0));
  EXPECT_EQ(ask_sql(uri, count), "2");
  ASSERT_TRUE(ensure_partitions(connection, 1, (1 << 24) - 1));
  EXPECT_EQ(ask_sql(uri, count), "2");
  ASSERT_TRUE(ensure_partitions(connection, 1, 1 << 24));
  EXPECT_EQ(ask_sql(uri, count), "3");
  EXPECT_EQ(ask_sql(uri, "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'event_1_1'"),
            "FOR VALUES FROM ('16777216') TO ('33554432')");
}

TEST(Partitions, AreMadeWhileAReaderHoldsTheTableOpen) {
  const std::string uri = log_with_one_event();
  pqxx::connection analyst(uri);
  pqxx::transaction<pqxx::repeatable_read> reading(analyst);
  reading.exec("SELECT count(*) FROM event");
  Connection connection(uri, DatabaseRole::writer);
  const auto made = ensure_partitions(connection, 1, 1 << 24);
  EXPECT_TRUE(made) << made.error().message;
  run_sql(uri,
          "INSERT INTO event SELECT 1, 16777216, 0, 1, now(), NULL, 2, 'log.ticked', 1, NULL, 'a', "
          "gen_random_uuid(), sha256('h'), sha256('s'), '{}', sha256('r')");
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM event_1_1"), "1");
}

TEST(Partitions, ARunThatCrossesAnEdgeIsReadAsOne) {
  const std::string uri = log_with_one_event();
  Connection connection(uri, DatabaseRole::writer);
  ASSERT_TRUE(ensure_partitions(connection, 1, 1 << 24));
  run_sql(uri,
          "INSERT INTO event SELECT 1, 16777210 + n, 3, n, to_timestamp(1700000000 + n), NULL, 2, "
          "CASE n WHEN 0 THEN 'run.started' WHEN 9 THEN 'run.ended' ELSE 'x.y' END, 1, NULL, 'a', "
          "gen_random_uuid(), sha256('h'), sha256('s'), '{\"run_id\": \"r3\"}', sha256('r') "
          "FROM generate_series(0, 9) n");
  Reader reader({uri, 1});
  EventFilter filter;
  filter.run_no = 3;
  auto events = reader.events(filter, 100);
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_EQ(events->size(), 10u);
  EXPECT_EQ(events->back().seq, 16'777'219);
  auto run = reader.load_run("r3");
  ASSERT_TRUE(run && *run);
  EXPECT_EQ((*run)->head.run_seq, 10);
  EXPECT_EQ((*run)->head.status, RunStatus::ended);
  EXPECT_EQ(*reader.log_size(), 16'777'220);
}

// MUNIMENT_ACCEPT=1 rewrites the file of schema/sql/.
void expect_reference(const std::string& file_name, const std::string& option) {
  const std::string root = MUNIMENT_SOURCE_ROOT;
  const std::string command =
      "python3 '" + root + "/scripts/dump_schema.py' " + option + " '" + test::fresh_database() + "'";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string dumped;
  char buffer[4096];
  while (const std::size_t got = fread(buffer, 1, sizeof buffer, pipe)) dumped.append(buffer, got);
  ASSERT_EQ(pclose(pipe), 0);
  const std::string file = root + "/schema/sql/" + file_name;
  if (const char* accept = std::getenv("MUNIMENT_ACCEPT"); accept != nullptr && *accept == '1') {
    std::ofstream(file) << dumped;
  }
  std::ostringstream reference;
  reference << std::ifstream(file).rdbuf();
  EXPECT_EQ(dumped, reference.str()) << "run again with MUNIMENT_ACCEPT=1 if the migrations are right";
}

TEST(Schema, TheReferenceDumpIsWhatTheMigrationsMake) { expect_reference("schema.sql", ""); }

// The definitions that muniment-verify expects. They differ between major versions of Postgres, so that this test is
// skipped on other versions.
TEST(Schema, TheDefinitionsAreWhatTheMigrationsMake) { expect_reference("definitions.txt", "--definitions"); }

}  // namespace
}  // namespace muniment::store
