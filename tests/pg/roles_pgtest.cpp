// Tests of each role's rights, statement by statement, on a real server: allowed statements must succeed, and all
// others must fail for lack of the privilege and for no other reason.
#include <gtest/gtest.h>

#include <pqxx/pqxx>
#include <string>
#include <vector>

#include "store/postgres/database.hpp"
#include "store/postgres/migrations.hpp"
#include "store/postgres/partitions.hpp"
#include "store/read/connection.hpp"
#include "store/read/pq.hpp"
#include "support/postgres_fixture.hpp"

namespace muniment::store {
namespace {

using test::ask_sql;
using test::run_sql;

constexpr const char* uuid_1 = "'00000000-0000-7000-8000-000000000001'";
constexpr const char* uuid_2 = "'00000000-0000-7000-8000-000000000002'";

// Returns a database with a row in every table, inserted by the superuser.
std::string database_with_rows() {
  const std::string uri = test::fresh_database();
  const std::string id = uuid_1;
  run_sql(
      uri,
      "INSERT INTO log_head (log_no, log_id) VALUES (1, gen_random_uuid());"
      "SELECT make_event_partition(1::smallint, 0);"
      "INSERT INTO event SELECT 1, n, n, 0, now(), NULL, 2, 'run.started', 1, NULL, 'a', gen_random_uuid(), sha256('h'), "
      "  sha256('s'), CASE n WHEN 0 THEN '{}' ELSE '{\"run_id\": \"r' || n || '\"}' END::json, sha256('r') FROM generate_series(0, 2) n;"
      "INSERT INTO run SELECT 1, n, 'r' || n, n, 'open', NULL, 2, 'a', 'b', 'g', '{}', NULL, NULL, now(), NULL, NULL "
      "  FROM generate_series(1, 2) n;"
      "INSERT INTO artifact SELECT gen_random_uuid(), 'r' || n, 's', 'p' || n, repeat('0', 64), 't', 1, now(), '{}', 1, n "
      "  FROM generate_series(1, 2) n;"
      "INSERT INTO manifest VALUES (" +
          id +
          ", 1, 1, 'r1', NULL, sha256('s'), sha256('h'), 2, '{}', now());"
          "INSERT INTO snapshot VALUES (1, 1, 1, 0, 1, sha256('s'), sha256('h'), sha256('h'), 2, '{}', NULL, 'x', now());"
          "INSERT INTO claim VALUES (" +
          id +
          ", 1, 1, 'r1', NULL, 't', '[]', 'open', now());"
          "INSERT INTO evidence VALUES (" +
          id +
          ", 1, 1, 'r1', 't', '{}', NULL, repeat('0', 64), NULL, 'a', now());"
          "INSERT INTO follower VALUES (1, 'run', 3)");
  return uri;
}

// Runs the statement as `role` in a transaction that is rolled back. Returns the SQLSTATE; "" if it was accepted.
std::string state_as(const std::string& uri, const std::string& role, const std::string& sql) {
  pqxx::connection connection(uri);
  pqxx::work work(connection);
  work.exec("SELECT set_config('role', muniment_role('" + role + "'), true)");
  try {
    work.exec(sql);
  } catch (const pqxx::insufficient_privilege&) {
    return "42501";  // libpqxx 6 reports it only as the exception's type
  } catch (const pqxx::sql_error& failure) {
    return failure.sqlstate().empty() ? failure.what() : failure.sqlstate();
  }
  return "";
}

const std::vector<std::string>& append_only() {
  static const std::vector<std::string> tables = {"event",      "event_1",         "event_1_0",
                                                  "checkpoint", "checkpoint_note", "artifact",
                                                  "manifest",   "snapshot",        "archived_partition"};
  return tables;
}
const std::vector<std::string>& every_table() {
  static const std::vector<std::string> tables = {"schema_migration",
                                                  "log_head",
                                                  "event",
                                                  "checkpoint",
                                                  "checkpoint_note",
                                                  "run",
                                                  "artifact",
                                                  "manifest",
                                                  "snapshot",
                                                  "claim",
                                                  "evidence",
                                                  "evidence_link",
                                                  "pointer",
                                                  "follower",
                                                  "archived_partition",
                                                  "report_run",
                                                  "report_span",
                                                  "report_span_model",
                                                  "report_place",
                                                  "report_price",
                                                  "task_change",
                                                  "task_evidence"};
  return tables;
}

class Roles : public ::testing::Test {
 protected:
  void allowed(const std::string& role, const std::vector<std::string>& statements) {
    for (const std::string& sql : statements) EXPECT_EQ(state_as(uri_, role, sql), "") << role << ": " << sql;
  }
  void refused(const std::string& role, const std::vector<std::string>& statements) {
    for (const std::string& sql : statements) EXPECT_EQ(state_as(uri_, role, sql), "42501") << role << ": " << sql;
  }
  // Statements that only the owner may execute.
  void refused_to_all(const std::string& role) {
    for (const std::string& table : append_only()) {
      refused(role, {"UPDATE " + table + " SET log_no = log_no", "DELETE FROM " + table, "TRUNCATE " + table,
                     "ALTER TABLE " + table + " DISABLE TRIGGER ALL", "DROP TABLE " + table});
    }
    refused(role,
            {"UPDATE log_head SET log_id = gen_random_uuid()", "DELETE FROM log_head", "TRUNCATE log_head",
             "UPDATE event SET body = NULL, salt = NULL", "CREATE TABLE own (a int)",
             "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'",
             "DROP TRIGGER append_only ON event", "UPDATE schema_migration SET sha256 = sha256",
             "ALTER TABLE event DISABLE ROW LEVEL SECURITY", "DROP POLICY reporter ON artifact",
             "DROP VIEW report.event_log", "CREATE ROLE more"});
  }

  const std::string uri_ = database_with_rows();
};

TEST_F(Roles, TheWriterAppendsAndKeepsWhatIsDerived) {
  const std::string event_row =
      "1, 3, 3, 0, now(), NULL, 2, 'x.y', 1, NULL, 'a', gen_random_uuid(), sha256('h'), sha256('s'), '{}', sha256('r')";
  allowed(
      "writer",
      {"INSERT INTO event SELECT " + event_row,
       "INSERT INTO log_head (log_no, log_id) VALUES (2, gen_random_uuid())",
       "UPDATE log_head SET epoch = epoch + 1, writer = gen_random_uuid()",
       "SELECT 1 FROM log_head FOR SHARE",
       "INSERT INTO checkpoint (log_no, size, root, edge, recorded_at) VALUES (1, 1, sha256('r'), 'e', now())",
       "INSERT INTO artifact VALUES (gen_random_uuid(), 'r1', 's', 'p9', repeat('0', 64), 't', 1, now(), '{}', 1, 9)",
       "INSERT INTO manifest VALUES (gen_random_uuid(), 1, 2, 'r1', NULL, sha256('s'), sha256('h'), 2, '{}', now())",
       "INSERT INTO snapshot VALUES (1, 1, 2, 0, 2, sha256('s'), sha256('h'), sha256('h'), 2, '{}', NULL, 'x', now())",
       std::string("INSERT INTO evidence_link VALUES (") + uuid_1 + ", " + uuid_1 + ", 'supports', 1, 2, 'r1')",
       std::string("INSERT INTO claim VALUES (") + uuid_2 + ", 1, 2, 'r1', NULL, 't', '[]', 'open', now())",
       "INSERT INTO task_change VALUES (1, 2, 'r1', 't', 'opened')",
       std::string("INSERT INTO task_evidence VALUES (1, 2, 'r1', 't', ") + uuid_1 + ", 1)",
       "DELETE FROM task_change",
       "DELETE FROM task_evidence",
       "UPDATE run SET status = 'ended'",
       "DELETE FROM report_run",
       "INSERT INTO report_place VALUES (1, 'file.read', 1, 1)",
       "INSERT INTO report_price VALUES ('v', 'm', 1, 1, 1, 1, true)",
       "UPDATE report_price SET current = false",
       "DELETE FROM pointer",
       "DELETE FROM claim",
       "UPDATE evidence SET type = 'u'",
       "UPDATE follower SET next_seq = 4",
       "SELECT make_event_partition(1::smallint, 1)",
       "CREATE TEMP TABLE claim (LIKE public.claim INCLUDING ALL)",
       "SELECT event_seq_as_of(1::smallint, now())"});
  for (const std::string& table : every_table()) allowed("writer", {"SELECT * FROM " + table});
  refused_to_all("writer");
  refused("writer",
          {"UPDATE log_head SET log_no = 3", "DELETE FROM follower", "DELETE FROM report_price",
           "UPDATE task_change SET task_id = 'u'", "UPDATE task_evidence SET task_id = 'u'",
           "INSERT INTO schema_migration VALUES (99, 'x', 'y')", "SELECT * FROM report.event_log",
           "SELECT * FROM report.lag", "SELECT report.wait()", "INSERT INTO archived_partition VALUES (1, 0, 0, 1)"});
}

TEST_F(Roles, TheWriterCopiesThroughRowLevelSecurity) {
  pqxx::connection connection(uri_);
  pqxx::work work(connection);
  work.exec("SELECT set_config('role', muniment_role('writer'), true)");
  EXPECT_EQ(integer_of(work.exec("SELECT count(*) FROM pg_class WHERE relrowsecurity")[0][0]), 22);
  work.exec("CREATE TEMP TABLE more AS SELECT * FROM artifact LIMIT 1");
  pqxx::stream_to stream(work, "artifact");
  stream << std::make_tuple(std::string("00000000-0000-7000-8000-000000000009"), "r1", "s", "p9", std::string(64, '0'),
                            "t", 1, "2026-01-01", "{}", 1, 9);
  stream.complete();
  EXPECT_EQ(integer_of(work.exec("SELECT count(*) FROM artifact")[0][0]), 3);
}

TEST_F(Roles, TheAuditorReadsAllAndChangesNothing) {
  for (const std::string& table : every_table()) allowed("auditor", {"SELECT * FROM " + table});
  allowed("auditor", {"COPY (SELECT * FROM event) TO STDOUT", "SELECT * FROM report.event_log",
                      "SELECT * FROM report.lag", "SELECT report.wait('0 s')"});
  EXPECT_EQ(state_as(uri_, "auditor", "SELECT 1 / (count(*) - 3) FROM event"), "22012") << "it sees all three events";
  refused_to_all("auditor");
  for (const std::string& table : every_table()) {
    refused("auditor", {"INSERT INTO " + table + " DEFAULT VALUES", "DELETE FROM " + table});
  }
  refused("auditor", {"UPDATE run SET status = 'ended'", "UPDATE follower SET next_seq = 0",
                      "SELECT make_event_partition(1::smallint, 1)"});
}

TEST_F(Roles, TheReporterReadsArtifactsAndTheReportViewsAlone) {
  allowed("reporter", {"SELECT * FROM artifact", "SELECT * FROM report.event_log", "SELECT * FROM report.lag",
                       "SELECT * FROM report.price", "SELECT report.wait('0 s')"});
  for (const std::string& table : every_table()) {
    if (table != "artifact") refused("reporter", {"SELECT * FROM " + table});
    refused("reporter", {"INSERT INTO " + table + " DEFAULT VALUES", "DELETE FROM " + table});
  }
  refused_to_all("reporter");
  refused("reporter", {"SELECT make_event_partition(1::smallint, 1)", "CREATE TABLE report.own (a int)",
                       "SELECT * FROM report_tool_seen", "SELECT * FROM report_model_span"});
}

std::string runs_seen(const std::string& uri, const std::string& setting, const std::string& from) {
  pqxx::connection connection(uri);
  pqxx::work work(connection);
  work.exec("SELECT set_config('role', muniment_role('reporter'), true), set_config('muniment.runs', '" + setting +
            "', true)");
  return text_if(work.exec("SELECT string_agg(run_id, ' ' ORDER BY run_id) FROM " + from)[0][0]).value_or("");
}

TEST_F(Roles, AReporterSeesTheRunsItIsShownAndNeverTheLogsOwn) {
  for (const char* from : {"artifact", "report.event_log"}) {
    EXPECT_EQ(runs_seen(uri_, "", from), "r1 r2") << from;
    EXPECT_EQ(runs_seen(uri_, "r2", from), "r2") << from;
    EXPECT_EQ(runs_seen(uri_, "r2,r1", from), "r1 r2") << from;
    EXPECT_EQ(runs_seen(uri_, "r3", from), "") << from;
    EXPECT_EQ(runs_seen(uri_, "_log", from), "") << from;
  }
}

TEST_F(Roles, ASlippedGrantShowsNothing) {
  const std::string reporter = ask_sql(uri_, "SELECT muniment_role('reporter')");
  for (const char* table : {"event", "run", "manifest", "snapshot", "claim", "evidence", "report_run", "report_span",
                            "report_place", "report_price"}) {
    run_sql(uri_, std::string("GRANT SELECT ON ") + table + " TO " + reporter);
    EXPECT_EQ(state_as(uri_, "reporter", std::string("SELECT 1 / count(*) FROM ") + table), "22012") << table;
  }
}

TEST_F(Roles, TheRedactorReadsNothing) {
  for (const std::string& table : every_table()) refused("redactor", {"SELECT * FROM " + table});
  refused_to_all("redactor");
  refused("redactor", {"SELECT * FROM report.event_log", "SELECT make_event_partition(1::smallint, 1)"});
}

constexpr const char* erase_event_1 = "SELECT erase_copies(1::smallint, 1, '{1}', '{}', NULL)";

// Appends the announcement that an erasure requires.
void announce(const std::string& uri, const std::string& type, const std::string& body) {
  run_sql(uri, "INSERT INTO event SELECT 1, max(seq) + 1, 1, max(run_seq) + 1, now(), NULL, 1, '" + type +
                   "', 1, NULL, 'a', gen_random_uuid(), sha256('h'), sha256('s'), '" + body +
                   "', sha256('r') FROM event");
}

TEST_F(Roles, NobodyButTheRedactorErases) {
  announce(uri_, "event.redacted", R"({"seq": 1})");
  for (const char* role : {"writer", "auditor", "reporter"}) {
    refused(role, {erase_event_1, "SELECT archive_event_partition(1::smallint, 0, '1 s')"});
  }
  allowed("redactor", {erase_event_1});
}

TEST_F(Roles, NothingIsErasedThatTheLogDoesNotSayIsErased) {
  EXPECT_EQ(state_as(uri_, "redactor", erase_event_1), "42501");
  announce(uri_, "event.redacted", R"({"seq": 2})");
  EXPECT_EQ(state_as(uri_, "redactor", erase_event_1), "42501") << "another event";
  announce(uri_, "event.redacted", R"({"seq": 1})");
  EXPECT_EQ(state_as(uri_, "redactor", erase_event_1), "");
  EXPECT_EQ(state_as(uri_, "redactor", "SELECT erase_copies(1::smallint, 1, '{1,2}', '{}', NULL)"), "42501")
      << "of another run";
  EXPECT_EQ(state_as(uri_, "redactor", "SELECT erase_copies(1::smallint, 1, '{1}', ARRAY[gen_random_uuid()], NULL)"),
            "42501");
  announce(uri_, "event.redacted", R"({"seq": 3})");
  EXPECT_EQ(state_as(uri_, "redactor", "SELECT erase_copies(1::smallint, 1, '{3}', '{}', NULL)"), "42501")
      << "an announcement";
}

TEST_F(Roles, AnErasureTakesEveryCopyAndNothingElse) {
  const std::string artifact = ask_sql(uri_, "SELECT artifact_id FROM artifact WHERE run_id = 'r1'");
  announce(uri_, "event.redacted", R"({"seq": 1})");
  announce(uri_, "artifact.redacted", R"({"artifact_id": ")" + artifact + R"("})");
  const std::string others = "SELECT md5(string_agg(e::text, '' ORDER BY seq)) FROM event e WHERE seq <> 1";
  const std::string before = ask_sql(uri_, others);
  const std::string kept =
      "SELECT (log_no, seq, run_no, run_seq, recorded_at, type, actor, event_id, body_hash, run_hash) FROM event WHERE seq = 1";
  const std::string entry = ask_sql(uri_, kept);
  for (int time = 0; time < 2; ++time) {
    run_sql(uri_, "SELECT erase_copies(1::smallint, 1, '{1}', ARRAY['" + artifact +
                      "']::uuid[], "
                      "'{\"agent\": \"\", \"labels\": {}}')");
  }
  EXPECT_EQ(ask_sql(uri_, "SELECT body IS NULL AND salt IS NULL FROM event WHERE seq = 1"), "t");
  EXPECT_EQ(ask_sql(uri_, kept), entry);
  EXPECT_EQ(ask_sql(uri_, others), before);
  EXPECT_EQ(ask_sql(uri_, "SELECT manifest IS NULL AND salt IS NULL FROM manifest"), "t");
  EXPECT_EQ(
      ask_sql(uri_,
              "SELECT state IS NULL AND salt IS NULL AND state_hash = decode(repeat('0', 64), 'hex') FROM snapshot"),
      "t");
  EXPECT_EQ(ask_sql(uri_, "SELECT text || pointers FROM claim"), "[]");
  EXPECT_EQ(ask_sql(uri_, "SELECT content FROM evidence"), "{}");
  EXPECT_EQ(ask_sql(uri_, "SELECT string_agg(coalesce(goal, '-'), ' ' ORDER BY run_no) FROM run"), "- g");
}

TEST_F(Roles, TheTriggersAllowAnErasureAndNoOtherChangeMeanwhile) {
  for (const char* const change :
       {"UPDATE event SET body = NULL, salt = NULL, actor = 'b'", "UPDATE event SET body = '{}', salt = sha256('x')",
        "DELETE FROM event", "UPDATE manifest SET manifest = NULL, salt = NULL, size_bytes = 3",
        "UPDATE snapshot SET state = '{}'", "UPDATE artifact SET metadata = '{}', hash = repeat('1', 64)",
        "DELETE FROM artifact"}) {
    EXPECT_EQ(state_as(uri_, "owner", std::string("SET LOCAL muniment.erasing = 'on'; ") + change), "42501") << change;
  }
  EXPECT_EQ(state_as(uri_, "owner", "SET LOCAL muniment.erasing = 'on'; UPDATE event SET body = NULL, salt = NULL"),
            "");
  EXPECT_EQ(state_as(uri_, "owner", "UPDATE event SET body = NULL, salt = NULL"), "42501") << "not by hand";
}

TEST_F(Roles, AConnectionTakesItsRoleOnAndItsLimits) {
  const auto shown = [&](DatabaseRole role, const std::string& sql) {
    Connection connection(uri_, role);
    auto text = guarded(connection, "asking",
                        [&] { return text_of(pqxx::nontransaction(*connection.impl().link).exec(sql)[0][0]); });
    return text ? *text : text.error().message;
  };
  EXPECT_EQ(shown(DatabaseRole::login, "SELECT current_user"), ask_sql(uri_, "SELECT session_user"));
  EXPECT_EQ(shown(DatabaseRole::writer, "SELECT current_user"), ask_sql(uri_, "SELECT muniment_role('writer')"));
  EXPECT_EQ(shown(DatabaseRole::redactor, "SELECT current_user"), ask_sql(uri_, "SELECT muniment_role('redactor')"));
  EXPECT_EQ(shown(DatabaseRole::reporter, "SELECT current_user"), ask_sql(uri_, "SELECT muniment_role('reporter')"));
  EXPECT_EQ(shown(DatabaseRole::reporter, "SHOW statement_timeout"), "30s");
  EXPECT_EQ(shown(DatabaseRole::reporter, "SHOW default_transaction_read_only"), "on");
}

// Returns the URI with another user, without a password: the private server trusts its socket.
std::string as_user(std::string uri, const std::string& user) {
  const std::size_t begin = uri.find("//") + 2;
  return uri.replace(begin, uri.find('@') - begin, user);
}

// A database that an ordinary user owns.
struct Hosted {
  std::string admin = test::empty_database();
  std::string name = ask_sql(admin, "SELECT current_database()");
  std::string user = "app_" + name;
  std::string uri = as_user(admin, user);

  explicit Hosted(const std::string& attributes) {
    run_sql(admin, "CREATE ROLE " + user + " LOGIN " + attributes);
    run_sql(admin, "ALTER DATABASE " + name + " OWNER TO " + user);
  }
  Status migrated() const {
    Connection connection(uri, DatabaseRole::login);
    RETURN_IF_ERROR(migrate(connection, embedded_migrations()));
    return check_roles(connection);
  }
};

TEST(HostedDatabase, AUserThatMayMakeRolesIsServedWithoutASuperuser) {
  const Hosted hosted("CREATEROLE");
  const Status status = hosted.migrated();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(ask_sql(hosted.admin, "SELECT muniment_role('writer')"), "muniment_" + hosted.name + "_writer");
  EXPECT_EQ(ask_sql(hosted.admin, "SELECT count(*) FROM pg_class WHERE relrowsecurity"), "0")
      << "BYPASSRLS needs a superuser, and COPY needs BYPASSRLS";
  Connection writer(hosted.uri, DatabaseRole::writer);
  EXPECT_TRUE(ensure_partitions(writer, 1, 0));
}

TEST(HostedDatabase, AUserThatMayNotIsToldWhatToRunAndThenServed) {
  const Hosted hosted("");
  const Status refused = hosted.migrated();
  ASSERT_FALSE(refused);
  const std::string& message = refused.error().message;
  const std::size_t begin = message.find("administrator run: ");
  ASSERT_NE(begin, std::string::npos) << message;
  const std::string statements = message.substr(begin + 19, message.rfind("then start again") - begin - 19);
  EXPECT_NE(statements.find("muniment_" + hosted.name + "_writer NOLOGIN BYPASSRLS; "), std::string::npos)
      << statements;
  run_sql(hosted.admin, statements);
  const Status status = hosted.migrated();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(ask_sql(hosted.admin, "SELECT count(*) FROM pg_class WHERE relrowsecurity"), "22");
  Connection writer(hosted.uri, DatabaseRole::writer);
  EXPECT_TRUE(ensure_partitions(writer, 1, 0));
}

TEST(HostedDatabase, AUserThatIsNoMemberIsRefusedByName) {
  const Hosted hosted("");
  const std::string writer = ask_sql(test::fresh_database(), "SELECT muniment_role('writer')");
  Connection owner(hosted.admin, DatabaseRole::login);
  ASSERT_TRUE(migrate(owner, embedded_migrations()));
  Connection connection(hosted.uri, DatabaseRole::login);
  const Status status = check_roles(connection);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::denied);
  EXPECT_NE(status.error().message.find("GRANT muniment_" + hosted.name + "_writer TO " + hosted.user),
            std::string::npos)
      << status.error().message;
  Connection as_writer(hosted.uri, DatabaseRole::writer);
  const Status opened = as_writer.ensure_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::denied) << opened.error().message;
}

TEST(HostedDatabase, APrefixCanBeGiven) {
  const std::string uri = test::empty_database();
  const std::string name = ask_sql(uri, "SELECT current_database()");
  run_sql(uri, "ALTER DATABASE " + name + " SET muniment.role_prefix = 'acme_" + name + "'");
  Connection connection(uri, DatabaseRole::login);
  ASSERT_TRUE(migrate(connection, embedded_migrations()));
  EXPECT_EQ(ask_sql(uri, "SELECT muniment_role('auditor')"), "acme_" + name + "_auditor");
}

}  // namespace
}  // namespace muniment::store
