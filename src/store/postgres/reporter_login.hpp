// The login of analysts on the private Postgres: `reporter`, a member of the group role reporter that the migrations
// make. What it may read is that role's; what is set here are limits. A login of its own rather than a role that a
// superuser takes on: there is nothing to go back to.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"

namespace muniment::store {

// The password that the file holds, its line's end left out. Errors: not_found; denied when others may read it;
// invalid_argument when it is empty, too long, or holds more than one line.
Result<std::string> read_reporter_password(const std::string& path);

// Makes the login unless it is there; an operator's changes of its limits stay. The password is hashed here: neither a
// statement nor a log of the server ever holds it. nullopt: it has none, and can come in over the Unix socket only.
// Errors: unavailable.
Status make_reporter_login(const std::string& uri, const std::optional<std::string>& password);

}  // namespace muniment::store
