// Waits until the search indexes have reached an event. A waiting request occupies a worker, so the number of waits is
// limited, and a wait ends when its client disconnects.
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment::gateway {

struct Services;
struct Call;

// Waits for the parameter min_seq, if it is present. Errors: invalid_argument for an event that is not in the log yet;
// over_budget if too many requests wait already; deadline_exceeded.
Status wait_for_min_seq(Call& call);

// Waits until `seq` is searchable. Errors: over_budget, deadline_exceeded.
Status wait_until_searchable(Services& services, std::int64_t seq, Deadline deadline);

}  // namespace muniment::gateway
