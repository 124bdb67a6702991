// Reads and writes the table checkpoint_note, which stores signed checkpoints at intervals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

// Returns the newest notes of at most this size, the newest first. The number is limited to those worth checking.
Result<std::vector<std::string>> read_newest_notes(Connection& connection, std::int16_t log_no, std::int64_t size_max);

// A size that is stored already keeps its note.
Status store_note(Connection& connection, std::int16_t log_no, std::int64_t size, const std::string& note, Time now);

}  // namespace muniment::store
