// Imports a Muniment export (muniment export --format jsonl) as runs of this log, with origin imported. The events of
// all runs are interleaved in the order of the log and processed in one pass, so that memory grows only with the open
// runs and the artifact ids. Artifacts and manifests are read from the folder that the export wrote.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

inline constexpr std::string_view log_format = "jsonl";

bool is_log_event(const json::Value& record);

struct ImportedLog {
  struct Run {
    std::string run_id;
    bool added = false;        // false: already imported
    std::uint64_t events = 0;  // events in the log, up to the end of the run
    std::uint64_t artifacts = 0;
    std::uint64_t missing = 0;   // missing events, counted from gaps in run_seq
    std::uint64_t archived = 0;  // events whose archived bodies are not in the export
  };
  std::vector<Run> runs;
  std::map<std::string, std::uint64_t> left_out;  // by type: events that only the original daemon may write
  std::vector<std::string> problems;              // the first problems, such as "line 7: …"
  std::uint64_t bad_lines = 0;
};

// Describes what the run lacks; empty: nothing.
std::string missing_words(const ImportedLog::Run& run);

// `artifacts`: folder of artifacts; empty: none. Errors: those of the daemon and of reading the file.
Result<ImportedLog> import_log(Client& client, const std::string& path, const std::string& artifacts,
                               const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace muniment::cli
