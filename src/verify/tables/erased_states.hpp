// States of snapshots that an erasure took, against the erasures of their runs: one that was stored before all that was
// erased, or after the erasures had ended, was taken by somebody else.
#pragma once

#include <set>
#include <string>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

// `redacted`: the artifacts that were erased: a state in a file may go by itself.
Status check_erased_states(Connection& connection, const Log& log, const std::set<std::string>& redacted,
                           Findings& findings);

}  // namespace muniment::verify
