// Translates one thread of a Claude Code session: the session's own lines or those of one subagent. A prompt begins a
// step, the lines of one message of the model become one answer, and a tool result is matched to its call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "adapters/import/claude_code/claude_code_lines.hpp"
#include "adapters/import/claude_code/claude_code_scan.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

// A parsed line.
struct SessionLine {
  json::Value value;
  std::uint64_t number = 0;
  std::string occurred_at = {};  // its timestamp, if valid
};

// A call that may have started a subagent.
struct SubagentCall {
  std::string call_id;
  std::string agent;
  std::string prompt;
};

class ClaudeCodeThread {
 public:
  // `scan` may be null.
  ClaudeCodeThread(std::string child, std::vector<RunAction>*& out, const SessionScan* scan)
      : child_(std::move(child)), out_(out), scan_(scan) {}

  void add_user(const SessionLine& line);
  void add_answer(const SessionLine& line);
  void add_system(const SessionLine& line);
  // Returns false if the line is not a prompt that a person sent while the model worked.
  bool add_queued(const SessionLine& line);
  // Keeps the line unchanged as x.claude_code.<type>.
  void add_raw(const SessionLine& line);
  // Records a repeated line as x.claude_code.repeated. `first` names the first occurrence; if `is_equal`, the content
  // is not kept again.
  void add_repeated(const SessionLine& line, const std::string& first, bool is_equal);
  // Records that characters of the next line were replaced; keeps `source` as an artifact.
  void add_repaired(std::uint64_t number, std::string_view source, std::uint64_t replaced);
  void add_unreadable(std::uint64_t number, std::string_view text, std::string_view why);
  void settle();
  void end();

  // Return the subagent calls that were made, and those that returned, since the last call.
  std::vector<SubagentCall> take_subagent_calls() { return std::exchange(subagent_calls_, {}); }
  struct Returned {
    std::string call_id;
    bool failed = false;
  };
  std::vector<Returned> take_returned() { return std::exchange(returned_, {}); }

  const std::string& first_prompt() const { return first_prompt_; }
  bool ended_turn() const { return ended_turn_; }

 private:
  struct Answer {  // answer of the model, still incomplete
    std::string message_id;
    std::string call_id;
    std::string model;
    bool is_more = false;            // the call was answered; these lines belong to the same message
    std::uint64_t number = 0;        // number of the first line
    std::string occurred_at;         // time of the last line
    std::vector<std::string> parts;  // JSON
    std::vector<std::string> rests;  // JSON: members of each line that no event field holds
    std::vector<std::pair<std::string, std::string>> tools;  // event kind, body of tool.called
    std::vector<std::pair<std::string, std::string>> plans;
    std::string usage;  // JSON, or empty
    std::string stop_reason;
    std::string error;  // error of the provider's API
  };

  struct Call {
    std::string call_id;
    std::string tool;  // empty: unknown
  };

  struct Message {  // message of the model
    std::string call_id;
    std::unordered_set<std::uint64_t> blocks;  // hashes of the blocks so far
  };

  void emit(std::uint64_t number, std::string_view part, std::string type, std::string body,
            const std::string& occurred_at);
  void begin_turn(const SessionLine& line);
  void end_turn(std::uint64_t number, std::string_view part);
  void begin_answer(const SessionLine& line, const std::string& id);
  void add_placeholder(const SessionLine& line);
  bool is_known(const std::string& id, const json::Value& content) const;
  void take_block(const SessionLine& line, const json::Value& block, std::vector<std::string>& unplaced);
  void take_call(const SessionLine& line, const json::Value& block);
  void close_answer();
  void add_prompt(const SessionLine& line, const std::string& parts, const std::string& rest,
                  std::vector<ImportedBlob> blobs);
  void add_return(const SessionLine& line, const json::Value& block, std::size_t index);
  void add_denial(const SessionLine& line, std::size_t index, const Call& call, std::string_view by);
  void add_file(const SessionLine& line, std::size_t index, const std::string& call_id);
  void add_compaction(const SessionLine* line);
  std::string new_call_id(const std::string& id);
  // Returns the members of a line that its events do not hold: JSON of an object, or empty. Members that every line
  // repeats are kept only when they change.
  std::string rest_of(const SessionLine& line, std::initializer_list<std::string_view> placed,
                      std::initializer_list<std::string_view> placed_in_message);

  const std::string child_;
  std::vector<RunAction>*& out_;  // the caller's current list
  const SessionScan* const scan_;
  std::size_t turns_ = 0;
  std::size_t answers_ = 0;
  std::string step_;
  std::string last_time_, turn_began_at_;
  std::uint64_t last_number_ = 0;
  std::optional<Answer> answer_;
  std::unordered_map<std::string, Message> messages_;
  struct Compaction {
    std::uint64_t number = 0;
    std::string occurred_at, trigger, rest;
    std::optional<std::int64_t> tokens_before;
  };
  std::optional<Compaction> compaction_;
  std::multimap<std::string, Call> pending_;  // by id in the source
  std::set<std::string> used_ids_;
  std::map<std::string, std::string> repeated_;
  std::vector<SubagentCall> subagent_calls_;
  std::vector<Returned> returned_;
  std::string first_prompt_;
  bool ended_turn_ = false;
};

}  // namespace muniment::cli
