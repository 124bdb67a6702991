// Imports a session file of Claude Code as a run, its subagents as child runs (claude_code_lines.hpp translates the
// lines). The file is read twice: for the hash that names the run, and line by line. Memory grows only with the ids of
// calls.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "adapters/import/claude_code/claude_code_session.hpp"
#include "adapters/import/tree.hpp"
#include "base/result.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

struct ImportedSession {
  std::string run_id;
  bool added = false;        // false: already imported
  std::uint64_t events = 0;  // events of its own run, as counted by ImportRecorder
  std::uint64_t artifacts = 0;
  std::vector<ImportedChild> children;
  ImportTally tally = {};
  std::size_t repaired = 0;  // records with characters that were replaced
};

// `progress` receives the number of bytes read and the total. With `grows`, the ids follow from the session's id
// (SourceFile::session), and a second import adds only new events. Errors: the daemon's, and those of reading the file.
Result<ImportedSession> import_claude_code(Client& client, const std::string& path, ClaudeCodeSession& session,
                                           const std::function<void(std::int64_t, std::int64_t)>& progress, bool scrub,
                                           bool grows = false);

}  // namespace muniment::cli
