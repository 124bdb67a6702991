// Finds functions, operators and casts that Postgres would call instead of its own: it chooses the one whose argument
// types fit best, regardless of the order of the search path. Results read through such a function may be wrong.
#pragma once

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

Status check_shadows(Connection& connection, Findings& findings);

}  // namespace muniment::verify
