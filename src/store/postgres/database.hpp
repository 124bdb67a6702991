// What a database must be before the daemon uses it: there, new enough, and durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "store/postgres/durability.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

// Makes the database `name` on the server of `server_uri` unless it is there.
Status make_database(const std::string& server_uri, const std::string& name);

// Why an acknowledged event could be lost on this server, as its settings are now. Errors: unavailable.
Result<std::optional<Unsafe>> read_unsafe(Connection& connection, std::int64_t required_standbys);

// Refuses a server older than 15, and one on which an acknowledged event could be lost (durability.hpp). The
// message names the setting, its value, and the command that mends it. Errors: conflict; unavailable.
Status check_settings(Connection& connection, std::int64_t required_standbys = 0);

// After the migrations: may this user be the writer, and may the writer write? No where the database was
// restored without its owners, on a server that lacks a grant, or where row-level security stands in the
// writer's way. The message has the statement that mends it. Errors: denied; unavailable.
Status check_roles(Connection& connection);

}  // namespace muniment::store
