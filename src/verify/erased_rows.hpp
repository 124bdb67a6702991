// What an erasure leaves in the tables beside the log: rows that say nothing, or no rows.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/scan.hpp"
#include "verify/shared_snapshot.hpp"

namespace muniment::verify {

// `erased`: the events that have neither salt nor body.
Status check_erased_rows(SharedSnapshot& snapshot, const Log& log, const std::vector<std::int64_t>& erased, Findings& findings);

}  // namespace muniment::verify
