// The table checkpoint_note: signed checkpoints, kept now and then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

// The newest of them of at most this size; as many as are worth a look. The newest first.
Result<std::vector<std::string>> read_newest_notes(Connection& connection, std::int16_t log_no, std::int64_t size_max);

// A size that is stored already keeps its note.
Status store_note(Connection& connection, std::int16_t log_no, std::int64_t size, const std::string& note, Time now);

}  // namespace muniment::store
