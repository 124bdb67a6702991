// Tests of migrations: they are applied once, in order, and refused if they differ from the applied ones.
#include "store/postgres/migrations.hpp"

#include <thread>

#include "support/postgres_fixture.hpp"

namespace muniment::store {
namespace {

using test::ask_sql;

const std::vector<Migration> two = {{1, "0001_first.sql", "CREATE TABLE first (a int);"},
                                    {2, "0002_second.sql", "CREATE TABLE second (b int);"}};

Status apply_to(const std::string& uri, const std::vector<Migration>& migrations) {
  Connection connection(uri, DatabaseRole::login);
  return migrate(connection, migrations);
}

TEST(Migrations, AreAppliedOnceAndRemembered) {
  const std::string uri = test::empty_database();
  for (int time = 0; time < 2; ++time) {
    const Status status = apply_to(uri, two);
    ASSERT_TRUE(status) << status.error().message;
  }
  EXPECT_EQ(ask_sql(uri, "SELECT string_agg(name, ' ' ORDER BY number) FROM schema_migration"),
            "0001_first.sql 0002_second.sql");
}

TEST(Migrations, OfThisBinaryAreNumberedFromOne) {
  const auto migrations = embedded_migrations();
  ASSERT_FALSE(migrations.empty());
  for (std::size_t i = 0; i < migrations.size(); ++i) {
    EXPECT_EQ(migrations[i].number, static_cast<int>(i) + 1);
  }
}

TEST(Migrations, AnAppliedFileThatWasEditedIsRefused) {
  const std::string uri = test::empty_database();
  ASSERT_TRUE(apply_to(uri, two));
  auto edited = two;
  edited[0].sql += " -- a word more";
  const Status status = apply_to(uri, edited);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::conflict);
  EXPECT_NE(status.error().message.find("0001_first.sql was changed after it was applied (sha256 "), std::string::npos)
      << status.error().message;
}

TEST(Migrations, DataOfANewerVersionIsRefusedAndLeftAlone) {
  const std::string uri = test::empty_database();
  ASSERT_TRUE(apply_to(uri, two));
  const Status status = apply_to(uri, {two[0]});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::conflict);
  EXPECT_NE(status.error().message.find(
                "of a newer Muniment (migration 0002_second); this daemon knows migrations up to 0001_first"),
            std::string::npos)
      << status.error().message;
}

TEST(Migrations, OneThatWasSlippedInBeforeAnAppliedOneIsRefused) {
  const std::string uri = test::empty_database();
  ASSERT_TRUE(apply_to(uri, {two[0], {3, "0003_third.sql", "CREATE TABLE third (c int);"}}));
  const Status status = apply_to(uri, {two[0], two[1], {3, "0003_third.sql", "CREATE TABLE third (c int);"}});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("0002_second.sql was never applied"), std::string::npos);
}

TEST(Migrations, AFailingOneLeavesNothingBehind) {
  const std::string uri = test::empty_database();
  const Status status = apply_to(uri, {two[0], {2, "0002_bad.sql", "CREATE TABLE half (x int); SELECT 1/0;"}});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("applying migration 0002_bad.sql"), std::string::npos);
  EXPECT_EQ(ask_sql(uri, "SELECT to_regclass('half')"), "");
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM schema_migration"), "1");
  EXPECT_TRUE(apply_to(uri, two)) << "and the next try starts where it stopped";
}

TEST(Migrations, TwoDaemonsAtOnceTakeTurns) {
  const std::string uri = test::empty_database();
  std::vector<std::thread> daemons;
  std::vector<Status> results(4, success());
  for (Status& result : results) {
    daemons.emplace_back([&] { result = apply_to(uri, embedded_migrations()); });
  }
  for (std::thread& daemon : daemons) daemon.join();
  for (const Status& result : results) EXPECT_TRUE(result) << result.error().message;
}

}  // namespace
}  // namespace muniment::store
