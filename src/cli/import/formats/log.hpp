// Our own export (muniment export --format jsonl) as runs of this log, origin imported. The runs of a file come mixed,
// in the order of their log; every one of them is followed at once, so that memory grows with the runs that are open
// and with the artifacts' ids, and not with the file. Artifacts and manifests come from the folder that the export
// wrote.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/connect/client.hpp"

namespace muniment::cli {

inline constexpr std::string_view log_format = "jsonl";

struct ImportedLog {
  struct Run {
    std::string run_id;
    bool added = false;        // false: it was there already
    std::uint64_t events = 0;  // in the log, up to its end
    std::uint64_t artifacts = 0;
    std::uint64_t missing = 0;   // of its events, by the gaps in run_seq
    std::uint64_t archived = 0;  // of its events, whose bodies were archived and did not come into the export
  };
  std::vector<Run> runs;
  std::map<std::string, std::uint64_t> left_out;  // by type: what only its own daemon can say
  std::vector<std::string> problems;              // "line 7: …", the first of them
  std::uint64_t bad_lines = 0;
};

// What a run lacks, in words; empty: nothing.
std::string missing_words(const ImportedLog::Run& run);

// `artifacts` empty: there are none. Errors: the daemon's, and those of reading the file.
Result<ImportedLog> import_log(Client& client, const std::string& path, const std::string& artifacts,
                               const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace muniment::cli
