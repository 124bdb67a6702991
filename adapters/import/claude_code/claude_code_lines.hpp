// Translates session files of the command-line agent Claude Code (JSONL) to events, line by line.
//
// It performs no input or output, so that imports and live recordings share it: pass the lines in order and carry out
// the returned actions. State is kept between lines, because a message of the model spans several lines, a tool result
// follows on a later line, and lines of subagents (sidechains) are interleaved. Memory grows with the number of tool
// calls and sidechain lines, about a hundred bytes each, and not with their content.
//
// Ids are derived from line numbers (ImportedEvent::kind, "17/answer"), so that the same file gives the same events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"

namespace muniment::cli {

inline constexpr std::string_view claude_code_format = "claude-code";

bool is_claude_code_line(const json::Value& record);

// Facts about the whole session from the lines so far.
struct SessionFacts {
  std::string session_id;
  std::string version;  // version of the agent
  std::string cwd;
  std::string git_branch;
  std::string goal;       // the first prompt
  std::string title;      // the newest summary
  bool answered = false;  // the newest message of the model ended its turn
  RunEnd end = {};        // as the session gives it; without an outcome: not at all
};

class SessionScan;

class ClaudeCodeLines {
 public:
  // `scan` has read the same lines ahead and outlives this object; null if the lines cannot be read ahead.
  explicit ClaudeCodeLines(const SessionScan* scan = nullptr);
  ~ClaudeCodeLines();
  ClaudeCodeLines(ClaudeCodeLines&&) noexcept;
  ClaudeCodeLines& operator=(ClaudeCodeLines&&) noexcept;

  // Takes one line without its line feed; `number` counts from 1. A line that is not a JSON object becomes
  // x.claude_code.unreadable, a line of an unknown type x.claude_code.<type>.
  void take(std::string_view line, std::uint64_t number, std::vector<RunAction>& out);
  // Notes a line that cannot be read because it is too long.
  void skip(std::uint64_t number, std::string_view why, std::vector<RunAction>& out);
  // Flushes the current message of the model, which is otherwise held until a line of something else arrives. A live
  // recording calls this when no line arrives for a while; later parts of the same message become separate messages.
  void settle(std::vector<RunAction>& out);
  // Ends everything that is open, including subagents, after the last line.
  void finish(std::vector<RunAction>& out);

  const SessionFacts& facts() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace muniment::cli
