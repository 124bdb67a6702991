// Tests of the role that muniment-verify uses: it reads as the auditor, who cannot change data but sees every row.
#include <gtest/gtest.h>

#include <string>

#include "support/postgres_fixture.hpp"
#include "verify/postgres/shared_snapshot.hpp"

namespace muniment::verify {
namespace {

using test::ask_sql;
using test::run_sql;

constexpr const char* is_auditor = "SELECT (current_user = muniment_role('auditor'))::int";
constexpr const char* is_login = "SELECT (current_user = session_user)::int";

// Returns -1 if the query fails.
std::int64_t ask(Result<Connection> connection, const std::string& select) {
  if (!connection) return -1;
  const auto answer = connection->integer(select);
  return answer ? answer->value_or(-1) : -1;
}

std::string as_user(std::string uri, const std::string& user) {
  const std::size_t begin = uri.find("//") + 2;
  return uri.replace(begin, uri.find('@') - begin, user);
}

class VerifyRole : public ::testing::Test {
 protected:
  // Creates a role of the server that no other test uses.
  std::string login(const std::string& name, const std::string& attributes = "") {
    std::string role = name + "_" + ask_sql(uri_, "SELECT current_database()");
    run_sql(uri_, "CREATE ROLE " + role + " LOGIN " + attributes);
    return role;
  }
  std::string auditor() const { return ask_sql(uri_, "SELECT muniment_role('auditor')"); }

  const std::string uri_ = test::fresh_database();
};

TEST_F(VerifyRole, EveryConnectionOfAVerifyIsTheAuditors) {
  ASSERT_EQ(ask(Connection::open(uri_), is_auditor), 1);
  auto snapshot = SharedSnapshot::take(uri_);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(*snapshot->holder().integer(is_auditor), 1);
  EXPECT_EQ(ask(snapshot->join(), is_auditor), 1);
  EXPECT_EQ(ask(snapshot->outside(), is_auditor), 1);
}

TEST_F(VerifyRole, NothingIsWritten) {
  auto connection = Connection::open(uri_);
  ASSERT_TRUE(connection);
  EXPECT_EQ(*connection->integer("SELECT (current_setting('transaction_read_only') = 'on')::int"), 1)
      << "outside a transaction";
  ASSERT_TRUE(connection->begin());
  EXPECT_EQ(*connection->integer("SELECT (current_setting('transaction_read_only') = 'on')::int"), 1);
  EXPECT_FALSE(connection->integer("SELECT count(*) FROM event; DELETE FROM event"));
}

TEST_F(VerifyRole, ALoginOfTheAuditorsReads) {
  const std::string user = login("examiner", "IN ROLE " + auditor());
  EXPECT_EQ(ask(Connection::open(as_user(uri_, user)), "SELECT count(*) FROM event"), 0);
}

TEST_F(VerifyRole, ALoginThatMayNotTakeItOnGoesOnAsItIs) {
  EXPECT_EQ(ask(Connection::open(as_user(uri_, login("stranger"))), is_login), 1);
}

TEST_F(VerifyRole, ADatabaseWithoutTheRoleIsReadAsTheLogin) {
  run_sql(uri_, "ALTER TABLE event OWNER TO CURRENT_USER");  // simulates a dump that was restored without owners
  EXPECT_EQ(ask(Connection::open(uri_), is_login), 1);
  EXPECT_EQ(ask(Connection::open(test::empty_database()), is_login), 1);
}

TEST_F(VerifyRole, NothingIsHiddenFromTheVerifierByTheRole) {
  const std::string hidden = "SELECT (current_user = session_user AND count(*) = 1)::int FROM claim";
  run_sql(
      uri_,
      "INSERT INTO claim VALUES ('00000000-0000-7000-8000-000000000001', 1, 1, 'r1', NULL, 't', '[]', 'open', now())");
  EXPECT_EQ(ask(Connection::open(uri_), hidden), 0);
  for (const auto& [hide, show] :
       {std::pair<std::string, std::string>("CREATE POLICY hides ON claim AS RESTRICTIVE FOR SELECT USING (false)",
                                            "DROP POLICY hides ON claim"),
        {"ALTER POLICY auditor ON claim USING (run_id <> 'r1')", "ALTER POLICY auditor ON claim USING (true)"},
        {"REVOKE SELECT ON claim FROM " + auditor(), "GRANT SELECT ON claim TO " + auditor()}}) {
    run_sql(uri_, hide);
    EXPECT_EQ(ask(Connection::open(uri_), hidden), 1) << hide;
    run_sql(uri_, show);
  }
  EXPECT_EQ(ask(Connection::open(uri_), is_auditor), 1) << "the rights are as they were";
}

TEST_F(VerifyRole, NoOtherSchemaIsReadInItsPlace) {
  const std::string name = ask_sql(uri_, "SELECT current_database()");
  run_sql(
      uri_,
      "CREATE SCHEMA clean; CREATE TABLE clean.claim AS SELECT generate_series(1, 5) n; GRANT USAGE ON SCHEMA clean TO PUBLIC;"
      "GRANT SELECT ON clean.claim TO PUBLIC; ALTER DATABASE " +
          name + " SET search_path = clean, public, pg_catalog");
  ASSERT_EQ(ask_sql(uri_, "SELECT count(*) FROM claim"), "5");
  EXPECT_EQ(ask(Connection::open(uri_), "SELECT count(*) FROM claim"), 0);
}

}  // namespace
}  // namespace muniment::verify
