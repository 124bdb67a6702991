// The partitions of the table `event`: 2^24 events each, made before they are needed, because a commit
// that finds none fails.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "store/connection.hpp"

namespace muniment::store {

// Makes the partition that `next_seq` falls into and the one after it, unless they are there. Does
// not wait for readers, nor make them wait. Called at start and when a partition is three quarters
// full.
Status ensure_partitions(Connection& connection, std::int16_t log_no, std::int64_t next_seq);

}  // namespace muniment::store
