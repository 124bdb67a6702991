// Functions, operators and casts that stand beside Postgres' own and would be called in their place: Postgres takes the
// one whose argument types fit best, wherever it lies on the search path. What is read through one may be false.
#pragma once

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

Status check_shadows(Connection& connection, Findings& findings);

}  // namespace muniment::verify
