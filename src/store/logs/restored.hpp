// Reads and writes <data>/restored.json. The file marks a data folder that was restored from a backup and may lack
// later events. It exists until a new log continues the restored one, or the operator confirms that nothing was lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace muniment::store {

struct Restored {
  std::int16_t log_no = 1;  // number of the log that must not be appended to
  Uuid log_id;
  std::int64_t size = 0;  // number of events in the restored log
  std::string root{};     // root of the tree of that size, hexadecimal; empty: not computed yet
  std::string from{};     // path of the backup; empty: the log was found shorter than recorded outside the database
  std::string made_at{};  // time of the backup
  std::int64_t known_size = 0;  // known minimum length of the original log; 0: unknown
  std::string checkpoint{};     // its newest signed checkpoint, as a note; empty: unknown
};

Result<std::optional<Restored>> read_restored(const std::string& data);
Status write_restored(const std::string& data, const Restored& restored);
Status remove_restored(const std::string& data);

// Path of the mark that exists during a restore, and after a restore whose verification had findings.
std::string restoring_mark(const std::string& data);

}  // namespace muniment::store
