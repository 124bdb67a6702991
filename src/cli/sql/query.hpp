// Queries the views for the commands of analysts: finds the database, waits for the views and prints the rows.
#pragma once

#include <string>
#include <string_view>

#include "cli/sql/rows.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

// Asks the daemon for its database, or reads the configuration if no daemon runs. Starts no daemon.
Result<std::string> database_uri(Session& session);

// Waits until the views include the newest events, or warns about the number of missing events, and prints the rows of
// one statement. Errors: those of SqlConnection.
Status print_query(Session& session, SqlConnection& connection, const std::string& query, SqlForm form);

// Returns the text as a constant of SQL. Errors: invalid_argument for a zero byte.
Result<std::string> sql_text(std::string_view text);

}  // namespace muniment::cli
