// A session of Claude Code as its files hold it: SESSION.jsonl, and SESSION/subagents/agent-*.jsonl where the subagents
// have files of their own. Their lines become one sequence of actions: a subagent starts where its call returns, or at
// the session's end if no call names it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/import/claude_code/claude_code_lines.hpp"
#include "cli/import/claude_code/claude_code_scan.hpp"

namespace muniment::cli {

// `paths`, with the sessions of a folder instead of it, and a session's file instead of those of its subagents.
std::vector<std::string> session_files(const std::vector<std::string>& paths);

class ClaudeCodeSession {
 public:
  // The first reading. `identities` may be null. Errors: those of reading; invalid_argument for another format.
  static Result<ClaudeCodeSession> open(const std::string& path, LineIdentities* identities);

  const ImportedRun& head() const { return head_; }
  const std::string& sha256() const { return own_.sha256; }
  std::size_t unreadable() const { return unreadable_; }
  std::size_t repaired() const { return repaired_; }  // records with characters that were replaced

  using CarryOut = std::function<Status(std::vector<RunAction>&)>;
  // The second reading. `progress` is told the bytes read, and those there are; it may be empty.
  Status each(const CarryOut& carry_out, const std::function<void(std::int64_t, std::int64_t)>& progress);
  // After each().
  const SessionFacts& facts() const { return facts_; }

 private:
  struct File {
    std::string path;
    std::string sha256;
    std::string agent;  // of a subagent: its type
    std::string goal;   // its first prompt
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
  std::map<std::string, File> subagents_;            // by their ids
  std::map<std::string, std::string> agents_;        // ids of subagents, by the call that names them
  std::map<std::string, std::string> called_types_;  // of subagents, by call
  SessionFacts facts_;
  std::function<void(std::int64_t, std::int64_t)> progress_;
  std::size_t unreadable_ = 0;
  std::size_t repaired_ = 0;
};

}  // namespace muniment::cli
