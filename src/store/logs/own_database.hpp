// Binds a data folder to the database that holds its log: the folder's keys, tiles and files belong to that log alone.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

// Returns how messages name a database: its URI without the password, or the private Postgres.
std::string database_name(const std::string& uri);

// Refuses to use the private Postgres of a folder whose daemon last used a database of the user's own. `database` is
// the configured URI; empty: the private Postgres. Called before a private Postgres is created. Errors: conflict.
Status check_database_choice(const std::string& data, const std::string& database);

// Refuses a database of the user's own that does not hold the log of this folder. A folder without a log accepts any.
// Errors: conflict; those of the folder's record (written_end.hpp); unavailable.
Status check_holds_own_log(Connection& connection, const std::string& data, std::int16_t log_no);

}  // namespace muniment::store
