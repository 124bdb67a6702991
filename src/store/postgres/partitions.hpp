// Creates the partitions of the table `event` in advance, because a commit without its partition fails. A partition
// holds 2^partition_bits events: one full subtree of the log.
#pragma once

#include <cstdint>
#include <utility>

#include "base/limits.hpp"
#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

// Creates the log with partitions of this size, the partition of `next_seq` and the following one, unless they exist.
// It neither waits for readers nor blocks them. Call it at start and whenever a partition is begun. Returns the number
// of events in a partition of this log.
Result<std::int64_t> ensure_partitions(Connection& connection, std::int16_t log_no, std::int64_t next_seq,
                                       std::int64_t partition_bits = limits::partition_bits_max);

// Returns the highest log number in this database (0: none), and whether that log has events.
Result<std::pair<std::int16_t, bool>> newest_log(Connection& connection);

}  // namespace muniment::store
