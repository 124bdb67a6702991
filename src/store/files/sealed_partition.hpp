// Queries and executes archiving in the database (migrations/0007_archive.sql): full partitions, obstacles to the
// removal of their bodies, and the transaction that removes them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "store/read/reader.hpp"

namespace muniment::store {

struct SealedPartition {
  std::int64_t number = 0;
  std::int64_t first_seq = 0;
  std::int64_t last_seq = 0;
  bool archived = false;
};

// Returns the partition of this number, or the oldest one that is not archived; nullopt: no such partition is full.
Result<std::optional<SealedPartition>> sealed_partition(Reader& reader, std::optional<std::int64_t> number);

// Returns the number of full partitions, which is the number of the partition that is being filled.
Result<std::int64_t> full_partitions(Reader& reader);

// Returns a run under a legal hold that has events in the partition.
Result<std::optional<std::string>> held_run(Reader& reader, const SealedPartition& partition);

// Removes most bodies in one transaction, as the redactor; the rows remain. Waits at most `wait` for other transactions
// that read the log. Errors: unavailable if they do not end; conflict if the partition is archived already.
Status take_bodies_out(Connection& redactor, std::int16_t log_no, std::int64_t number, std::chrono::seconds wait);

}  // namespace muniment::store
