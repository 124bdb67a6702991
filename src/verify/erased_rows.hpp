// What an erasure leaves: events without a body, and in the tables beside the log rows that say nothing, or no rows.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/scan.hpp"
#include "verify/shared_snapshot.hpp"

namespace muniment::verify {

// `erased`: the events that have neither salt nor body. `announced`: those of which an event.redacted says that they are erased.
// `data`: the daemon's folder, or empty. Errors: unavailable where it is still to carry one of them out.
Status check_erased_rows(SharedSnapshot& snapshot, const Log& log, const std::vector<std::int64_t>& erased, const std::set<std::int64_t>& announced,
                         const std::string& data, Findings& findings);

}  // namespace muniment::verify
