// Session files of the command-line agent Claude Code (JSONL), line by line: what every line means as events.
//
// Nothing is read or sent here, so that an import and a live recording share the translation: feed the lines in
// order, and do what comes back. State is kept between lines, because a message of the model comes on several,
// a tool's answer on a later one, and subagents in between (sidechains). A line's uuid and a message's id are
// identities: a line or a block that is repeated is no further turn, call or usage. Memory grows with the number of
// lines and calls, some hundred bytes each, and not with their texts.
//
// Ids are made of line numbers (ImportedEvent::kind, "17/answer"): the same file gives the same events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/import/events.hpp"

namespace muniment::cli {

inline constexpr std::string_view claude_code_format = "claude-code";

// What the lines so far say about the session as a whole.
struct SessionFacts {
  std::string session_id;
  std::string version;  // of the agent
  std::string cwd;
  std::string git_branch;
  std::string goal;       // the first prompt
  std::string title;      // the newest of its summaries
  bool answered = false;  // the newest message of the model ended its turn
};

class SessionScan;

class ClaudeCodeLines {
 public:
  // `scan`: of the same lines, or null where they cannot be read ahead; it lives as long as this.
  explicit ClaudeCodeLines(const SessionScan* scan = nullptr);
  ~ClaudeCodeLines();
  ClaudeCodeLines(ClaudeCodeLines&&) noexcept;
  ClaudeCodeLines& operator=(ClaudeCodeLines&&) noexcept;

  // One line without its line feed; `number` counts from 1. A line that is no JSON object is kept as
  // x.claude_code.unreadable, one of an unknown type as x.claude_code.<type>.
  void take(std::string_view line, std::uint64_t number, std::vector<RunAction>& out);
  // The line cannot be had at all (it is too long): that is noted.
  void skip(std::uint64_t number, std::string_view why, std::vector<RunAction>& out);
  // A message of the model is held back until a line that is not part of it: a live recording that sees no
  // further line for a while asks for it here. What follows of the same message comes as messages of its own.
  void settle(std::vector<RunAction>& out);
  // There are no further lines: what is open is ended, subagents too.
  void finish(std::vector<RunAction>& out);

  const SessionFacts& facts() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace muniment::cli
