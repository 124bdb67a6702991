// Migrations: the SQL files of migrations/, compiled into the binary, applied in order, once, each in
// a transaction of its own. The table `schema_migration` remembers what was applied, by its hash.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

struct Migration {
  int number = 0;    // 1 for 0001_log.sql
  std::string name;  // 0001_log.sql
  std::string sql;
};

// Those of this binary, by number.
std::vector<Migration> embedded_migrations();

// Brings the database up to date under an advisory lock. Errors: conflict when an applied file was
// edited since, is unknown here (the data is of a newer Muniment), or one was slipped in before it.
Status migrate(Connection& connection, const std::vector<Migration>& migrations);

}  // namespace muniment::store
