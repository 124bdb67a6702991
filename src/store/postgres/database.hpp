// Checks that a database meets the daemon's requirements: it exists, is new enough, and is durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "store/postgres/durability.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

// Creates the database `name` on the server of `server_uri` unless it exists.
Status make_database(const std::string& server_uri, const std::string& name);

// Refuses a server that the daemon cannot write to as it must: one behind a pooler that shares sessions between
// connections, one older than Postgres 15, a standby, and a database with another encoding than UTF8. The message has
// the remedy. Errors: conflict; unavailable.
Status check_server(Connection& connection);

// Returns the reason why an acknowledged event could be lost with the server's current settings. Errors: unavailable.
Result<std::optional<Unsafe>> read_unsafe(Connection& connection, const Standbys& standbys);

// Refuses a server that check_server refuses, and one on which an acknowledged event could be lost (durability.hpp).
// The message names the setting, its value, and the command that fixes it. Errors: conflict; unavailable.
Status check_settings(Connection& connection, const Standbys& standbys = {});

// Checks, after the migrations, that this user may act as the writer and that the writer may write. Fails if the
// database was restored without its owners, if a grant is missing, or if row-level security blocks the writer. The
// message contains the statement that fixes it. Errors: denied; unavailable.
Status check_roles(Connection& connection);

}  // namespace muniment::store
