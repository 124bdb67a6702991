// Converts messages of the GenAI semantic conventions to content parts: `parts` of gen_ai.input.messages,
// gen_ai.output.messages and gen_ai.system_instructions, and the bodies of the older gen_ai.*.message events, which
// have the form of chat completions (content, tool_calls).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::cli {

// The parts of one message.
struct OtlpParts {
  std::vector<std::string> parts;       // JSON, according to the schema of a content
  std::vector<std::string> tool_calls;  // ids of the requested calls
  bool whole = true;                    // false: the parts do not represent all of the message
};

// Converts a list of parts.
OtlpParts otlp_parts(const json::Value& list);
// Converts a message with "role" and "parts".
OtlpParts otlp_message_parts(const json::Value& message);
// Converts the body of a gen_ai.*.message event, or the message of a gen_ai.choice.
OtlpParts otlp_body_parts(const json::Value& body);

// Returns a role that message.added accepts; for any other role, "user" with `known` set to false.
std::string_view otlp_role(std::string_view role, bool& known);

}  // namespace muniment::cli
