// Waiting until the search indexes have reached an event. A worker waits, so only some may at once, and none for a
// client that has left.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment::gateway {

struct Services;
struct Call;

// Of the workers, how many may wait at once, and how many do.
struct IndexWaits {
  std::size_t max = 1;
  std::atomic<std::size_t> now = 0;
};

// What the parameter min_seq asks for, if it is there. Errors: invalid_argument for an event that the log does not have
// yet; over_budget when too many wait already; deadline_exceeded.
Status wait_for_min_seq(Call& call);

// Until `seq` is searchable. Errors: over_budget, deadline_exceeded.
Status wait_until_searchable(Services& services, std::int64_t seq, Deadline deadline);

}  // namespace muniment::gateway
