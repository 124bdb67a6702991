// Translates dialogues in the form of chat completions (role, content, tool_calls, tool_call_id), which several formats
// share: every answer of the model begins a step, and the tool messages that follow hold the results of its tool calls.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"
#include "adapters/import/formats/chat_turns.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

// Status and exit code of a tool result.
struct ToolOutcome {
  std::string_view status = unknown_end;
  std::optional<std::int64_t> exit_code;
};
// Derives the outcome from the nonempty text of a tool result.
using JudgeTool = ToolOutcome (*)(std::string_view text);

class ChatTrace {
 public:
  // `known`: members of messages that the format is known to have besides the dialogue; they are kept as x_details.
  // `model`: model of answers that do not name one; empty: unknown.
  ChatTrace(std::vector<ImportedEvent>& events, JudgeTool judge, KnownMembers known = {}, std::string model = {})
      : turns_(events, known), judge_(judge), model_(std::move(model)) {}

  // Takes the members timestamp, usage, cost, model and error of a message where they have the expected form.
  void add(const json::Value& message);
  // The same for a trace without structure: answers are plain text, and tool results have no call.
  void add_text(std::string_view role, std::string_view text);
  void end();

 private:
  struct Call {
    std::string source_id;
    std::string call_id;
  };

  void add_answer(const json::Value& message);
  void add_calls(const json::Value& message, const std::string& requested_by);
  void add_call(const json::Value& function, const std::string& source_id, const std::string& requested_by,
                SourceRest rest);
  void add_return(const json::Value& message, const std::string& call_id);
  void add_message(const json::Value& message, const std::string& role);
  std::string take_pending(const json::Value& message);

  TurnWriter turns_;
  const JudgeTool judge_;
  const std::string model_;
  std::vector<Call> pending_;
};

}  // namespace muniment::cli
