// Tests of the database maintenance after an erasure: statistics and pages.
#include <gtest/gtest.h>

#include <chrono>
#include <pqxx/pqxx>

#include "store/logs/erasure.hpp"
#include "support/log_fixture.hpp"

namespace muniment::store {
namespace {

using namespace std::chrono_literals;
using test::ask_sql;
using test::run_sql;

class ErasurePgTest : public test::LogFixture {};

TEST_F(ErasurePgTest, ATableThatCannotBeVacuumedInTimeIsNamedAndTheOthersAreDone) {
  Connection owner(uri, DatabaseRole::login);
  run_sql(uri, "ANALYZE event");  // also creates statistics of the partitioned table itself
  pqxx::connection other(uri);
  pqxx::work holding(other);
  holding.exec("LOCK TABLE claim IN ROW EXCLUSIVE MODE");
  EXPECT_TRUE(vacuum_tables(owner, 1, {0}, 1s)) << "a writer is in nobody's way";
  holding.exec("LOCK TABLE claim IN SHARE MODE");
  const Status left = vacuum_tables(owner, 1, {0}, 1s);
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, Errc::unavailable);
  EXPECT_NE(left.error().message.find("public.claim (57014)"), std::string::npos) << left.error().message;
  EXPECT_EQ(left.error().message.find("public.snapshot"), std::string::npos) << left.error().message;
  EXPECT_NE(ask_sql(uri, "SELECT last_vacuum FROM pg_stat_user_tables WHERE relname = 'snapshot'"), "");
  holding.abort();
  // The time limit applied to that command only.
  EXPECT_TRUE(analyse_tables(owner));
  EXPECT_TRUE(vacuum_tables(owner, 1, {}, 1s));
}

}  // namespace
}  // namespace muniment::store
