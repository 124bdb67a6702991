// Translates dialogues in the form of chat completions (role, content, tool_calls, tool_call_id), which several formats
// share: every answer of the model begins a step, and the tool messages that follow hold the results of its tool calls.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "cli/import/events.hpp"

namespace muniment::cli {

// Derives the status from the nonempty text of a tool result.
struct ToolOutcome {
  std::string_view status = unknown_end;
  std::optional<std::int64_t> exit_code;
};
using JudgeTool = ToolOutcome (*)(std::string_view text);

class ChatTrace {
 public:
  ChatTrace(std::vector<ImportedEvent>& events, JudgeTool judge) : events_(events), judge_(judge) {}

  void add(const json::Value& message);
  // The same for a trace without structure: answers are plain text, and tool results have no call.
  void add_text(std::string_view role, std::string_view text);
  void end();

 private:
  struct Call {
    std::string source_id;
    std::string call_id;
  };

  void begin_step();
  void add_answer(const json::Value& message);
  void add_calls(const json::Value& message, const std::string& model_call);
  void add_call(const json::Value& function, const std::string& source_id, const std::string& model_call);
  void add_return(const json::Value& message, const std::string& call_id);
  void add_message(const json::Value& message, const std::string& role);
  std::string new_call_id(const std::string& source_id);
  std::string take_pending(const json::Value& message);
  void add(std::string_view what, std::string type, std::string body);
  void call_model(const std::string& call_id);

  std::vector<ImportedEvent>& events_;
  const JudgeTool judge_;
  std::size_t messages_ = 0;
  std::size_t steps_ = 0;
  std::size_t calls_ = 0;
  std::string step_;  // the open step; empty: none
  std::vector<Call> pending_;
  std::set<std::string> used_ids_;  // a trace may repeat an id
};

}  // namespace muniment::cli
