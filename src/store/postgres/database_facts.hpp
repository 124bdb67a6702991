// Inspects a database read-only from outside, for `muniment doctor`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/postgres/durability.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

struct DatabaseFacts {
  std::string server_version;    // "15.14 (Debian …)"
  std::optional<Unsafe> unsafe;  // reason why acknowledged events could be lost
  std::vector<std::string> unknown_migrations, edited_migrations, missing_migrations;  // by name
  Time now;                                                                            // the server's clock
  bool has_log = false;  // the following members describe log `log_no`
  std::int64_t events = 0;
  Time last_recorded_at;  // 0: the log is empty
  std::int64_t connections = 0, connections_max = 0;
};

// Errors: unavailable; denied.
Result<DatabaseFacts> read_database_facts(Connection& connection, std::int16_t log_no, const Standbys& standbys);

// Returns the paths (relative to the artifact root) that no row names, in order.
Result<std::vector<std::string>> paths_without_row(Connection& connection, const std::vector<std::string>& paths);

}  // namespace muniment::store
