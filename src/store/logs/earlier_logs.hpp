// The logs that a log goes on from after a restore: each begins with log.restored, which names the one before it. They
// are closed. Their runs are read through, with the files, archives and tiles that are theirs, and nothing is appended
// to them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "store/logs/log_place.hpp"
#include "store/read/reader.hpp"
#include "store/tables/runs.hpp"

namespace muniment::store {

struct EarlierLog {
  LogPlace place;
  std::string folder;  // of its own files: keys/, tiles/, archive/
  Uuid log_id;
  std::int64_t size = 0;     // events, as log.restored of the log after it says
  std::optional<Hash> root;  // of the tree of that size, likewise
  std::string checkpoint;    // the newest note that was known of it when it was closed; may be of a larger size
  RunDirectory runs;         // those that were asked for
};

// The newest first; without any for a log that begins a history.
using EarlierLogs = std::vector<std::unique_ptr<EarlierLog>>;

// Follows log.restored back from the reader's log; `data` is the data folder. Errors: corrupt; unavailable.
Result<EarlierLogs> read_earlier_logs(Reader& reader, const std::string& data);

// The run of that name in this log, or nullptr; it takes nothing more (Run::closed_log). Errors: unavailable.
Result<std::shared_ptr<Run>> find_run(EarlierLog& log, Reader& reader, std::string_view run_id);

}  // namespace muniment::store
