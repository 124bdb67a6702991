// Messages of the GenAI semantic conventions as content parts, which are made alike: `parts` of gen_ai.input.messages,
// gen_ai.output.messages and gen_ai.system_instructions, and the bodies of the older gen_ai.*.message events, which are
// those of chat completions (content, tool_calls).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::cli {

// The parts of one message, and whether they say all of it.
struct OtlpParts {
  std::vector<std::string> parts;       // JSON, as the schema of a content has them
  std::vector<std::string> tool_calls;  // the ids of the calls that it asks for
  bool whole = true;                    // false: something of it has no place in a part
};

// `list` is an array of parts.
OtlpParts otlp_parts(const json::Value& list);
// A message with "role" and "parts".
OtlpParts otlp_message_parts(const json::Value& message);
// The body of a gen_ai.*.message event, or of the message of a gen_ai.choice.
OtlpParts otlp_body_parts(const json::Value& body);

// A role that message.added knows; "user" for any other, and then `known` is false.
std::string_view otlp_role(std::string_view role, bool& known);

}  // namespace muniment::cli
