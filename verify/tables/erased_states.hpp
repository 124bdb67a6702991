// Checks erased states of snapshots against the erasures of their runs. A state that was stored before all erased
// events, or after the erasures had ended, was removed by other means.
#pragma once

#include <set>
#include <string>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

// `redacted` are the erased artifacts. A state in a file may be erased separately.
Status check_erased_states(Connection& connection, const Log& log, const std::set<std::string>& redacted,
                           Findings& findings);

}  // namespace muniment::verify
