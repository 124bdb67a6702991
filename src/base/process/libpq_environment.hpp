// Separates a private Postgres from the variables (PGSERVICE, PGOPTIONS, PGHOSTADDR, …) that a user has set for other
// databases.
#pragma once

#include <string_view>

namespace muniment {

// First part of the URI of every private Postgres, up to the first byte of the percent-encoded path of its socket
// folder.
inline constexpr std::string_view private_postgres_uri = "postgresql://muniment@/muniment?host=%2F";

// Removes all variables of libpq (PG…) from the environment of this process and of its later children if `uri` is that
// of a private Postgres, or empty, as in the configuration. For a database of the user's own they remain in force.
// Called before the first connection, while no other thread reads the environment.
void ignore_libpq_variables(std::string_view uri);

}  // namespace muniment
