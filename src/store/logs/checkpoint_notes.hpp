// Reads and writes the table checkpoint_note, which stores signed checkpoints at intervals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

// Returns the newest notes of at most this size, newest first. Their number is limited to those worth checking.
Result<std::vector<std::string>> read_newest_notes(Connection& connection, std::int16_t log_no, std::int64_t size_max);

// Stores a note. A size that has a note keeps it.
Status store_note(Connection& connection, std::int16_t log_no, std::int64_t size, const std::string& note, Time now);

}  // namespace muniment::store
