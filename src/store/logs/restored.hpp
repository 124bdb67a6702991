// <data>/restored.json: this data folder was brought back from a backup, and nobody here knows what was appended after
// it was made. It stands until a new log goes on from it, or the operator said that nothing was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace muniment::store {

struct Restored {
  std::int16_t log_no = 1;  // of the log that is not to be appended to any more
  Uuid log_id;
  std::int64_t size = 0;        // events that are there
  std::string root{};           // of the tree of that size, hexadecimal; empty: not worked out yet
  std::string from{};           // which backup; empty: the log was found shorter than what was recorded beside it
  std::string made_at{};        // when it was made
  std::int64_t known_size = 0;  // how long the log was, at least; 0: nothing is known
  std::string checkpoint{};     // the newest signed checkpoint of it, as a note; empty: none is known
};

Result<std::optional<Restored>> read_restored(const std::string& data);
Status write_restored(const std::string& data, const Restored& restored);
Status remove_restored(const std::string& data);

// <data>/restoring stands while a restore goes on, and after one whose verify found something.
std::string restoring_mark(const std::string& data);

}  // namespace muniment::store
