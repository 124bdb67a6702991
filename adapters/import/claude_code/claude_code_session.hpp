// Reads a session of Claude Code from its files: SESSION.jsonl, and SESSION/subagents/agent-*.jsonl if subagents have
// their own files. Translates their lines into one sequence of actions: a subagent starts when its call returns, or at
// the end of the session if no call names it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/import/claude_code/claude_code_lines.hpp"
#include "adapters/import/claude_code/claude_code_scan.hpp"
#include "adapters/import/folders.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// Returns `paths` with each folder replaced by the traces below it, and each subagent's file by the file of its
// session. A folder without traces stays, unless it is watched (`entered`). Errors: those of find_traces.
Result<std::vector<std::string>> session_files(const std::vector<std::string>& paths, const TraceWalk& walk);

class ClaudeCodeSession {
 public:
  // Scans all files; each() translates them. `identities` may be null. Errors: those of reading; invalid_argument for
  // another format.
  static Result<ClaudeCodeSession> open(const std::string& path, LineIdentities* identities);

  const ImportedRun& head() const { return head_; }
  const std::string& sha256() const { return own_.sha256; }
  std::size_t repaired() const { return repaired_; }  // records with characters that were replaced

  using CarryOut = std::function<Status(std::vector<RunAction>&)>;
  // Translates the lines. Calls `progress`, unless it is empty, with the bytes read and the bytes in all.
  Status each(const CarryOut& carry_out, const std::function<void(std::int64_t, std::int64_t)>& progress);
  // Valid after each().
  const SessionFacts& facts() const { return facts_; }

 private:
  struct File {
    std::string path;
    std::string sha256;
    std::string agent;  // type of a subagent
    std::string goal;   // first prompt of a subagent
    std::shared_ptr<SessionScan> scan;
    bool is_taken = false;
  };

  Status scan_file(File& file, LineIdentities* identities);
  Status find_subagents(LineIdentities* identities);
  Result<SessionFacts> walk(File& file, const std::string& child, const CarryOut& carry_out);
  Status take(std::vector<RunAction>& actions, const std::string& child, const CarryOut& carry_out);
  Status start_subagent(const std::string& key, const std::string& parent, const std::string& call_id,
                        const CarryOut& carry_out);

  ImportedRun head_;
  File own_;
  std::map<std::string, File> subagents_;            // by id
  std::map<std::string, std::string> agents_;        // subagent ids, by call id
  std::map<std::string, std::string> called_types_;  // subagent types, by call id
  SessionFacts facts_;
  std::function<void(std::int64_t, std::int64_t)> progress_;
  std::size_t repaired_ = 0;
};

}  // namespace muniment::cli
