// The partitions of the table `event`, made before they are needed, because a commit that finds none
// fails. A partition is 2^partition_bits events: one full subtree of the log.
#pragma once

#include <cstdint>
#include <utility>

#include "base/limits.hpp"
#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

// Makes the log, with partitions of this size, unless it is there; then the partition that `next_seq`
// falls into and the one after it, unless they are there. Does not wait for readers, nor make them wait.
// Called at start and when a partition is begun. Answers the events of a partition of this log.
Result<std::int64_t> ensure_partitions(Connection& connection, std::int16_t log_no, std::int64_t next_seq,
                                       std::int64_t partition_bits = limits::partition_bits_max);

// The highest number that a log of this database has, 0 where there is none, and whether it has events.
Result<std::pair<std::int16_t, bool>> newest_log(Connection& connection);

}  // namespace muniment::store
