// Applies migrations: the SQL files of migrations/, embedded in the binary, in order, once, each in its own
// transaction. The table `schema_migration` records the applied ones with their hashes.
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

// Returns the migrations of this binary, ordered by number.
std::vector<Migration> embedded_migrations();

// Updates the database under an advisory lock. Errors: conflict if an applied file was changed since, is unknown to
// this binary (a newer Muniment wrote the data), or was preceded by one that was added later.
Status migrate(Connection& connection, const std::vector<Migration>& migrations);

}  // namespace muniment::store
