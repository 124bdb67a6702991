// What the database knows of archiving (migrations/0007_archive.sql): which partitions are full, what
// stands against taking their bodies away, and the one transaction that does it.
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

// The partition of this number, or the oldest that is not archived. nullopt: no such partition is full.
Result<std::optional<SealedPartition>> sealed_partition(Reader& reader, std::optional<std::int64_t> number);

// How many partitions are full: those before this number. The next one is being filled.
Result<std::int64_t> full_partitions(Reader& reader);

// A run with events in it that is under a legal hold.
Result<std::optional<std::string>> held_run(Reader& reader, const SealedPartition& partition);

// As the redactor, all of it or nothing: the rows stay, and most bodies go. Waits so long for others' transactions
// that read the log. Errors: unavailable when they do not end; conflict when it is archived already.
Status take_bodies_out(Connection& redactor, std::int16_t log_no, std::int64_t number, std::chrono::seconds wait);

}  // namespace muniment::store
