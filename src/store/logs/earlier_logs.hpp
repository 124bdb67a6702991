// Reads the closed logs that precede a log after restores. Each successor begins with log.restored, which names its
// predecessor. The runs of a closed log can be read, with its files, archives and tiles, but nothing is appended to it.
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
  std::string folder;  // folder of its files: keys/, tiles/, archive/
  Uuid log_id;
  std::int64_t size = 0;     // number of events according to its successor's log.restored
  std::optional<Hash> root;  // root of the tree of that size, from the same event
  std::string checkpoint;    // newest note known at the closing; it may cover a larger size
  RunDirectory runs;         // runs that were requested
};

// Logs from the newest to the oldest; empty for a log without a predecessor.
using EarlierLogs = std::vector<std::unique_ptr<EarlierLog>>;

// Follows log.restored backwards from the reader's log. `data` is the data folder. Errors: corrupt; unavailable.
Result<EarlierLogs> read_earlier_logs(Reader& reader, const std::string& data);

// Returns the run with that id in this log, or nullptr. Nothing can be appended to it (Run::closed_log). Errors:
// unavailable.
Result<std::shared_ptr<Run>> find_run(EarlierLog& log, Reader& reader, std::string_view run_id);

}  // namespace muniment::store
