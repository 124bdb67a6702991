// Manages the login of analysts on the private Postgres: `reporter`, a member of the group role reporter that the
// migrations create. The group role defines its rights; this file sets its limits. A separate login is used because a
// superuser that assumes a role could reset it.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"

namespace muniment::store {

// Returns the password in the file, without the line terminator. Errors: not_found; denied if other users may read the
// file; invalid_argument if it is empty, too long, or has several lines.
Result<std::string> read_reporter_password(const std::string& path);

// Creates the login unless it exists; an operator's changes to its limits are kept. The password is hashed here, so
// that no statement or server log ever holds it. nullopt: the login has no password and can connect only over the Unix
// socket. Errors: unavailable.
Status make_reporter_login(const std::string& uri, const std::optional<std::string>& password);

}  // namespace muniment::store
