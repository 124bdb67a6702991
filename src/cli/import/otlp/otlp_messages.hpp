// Converts messages to content parts: those of the GenAI semantic conventions (`parts`), of chat completions
// (`content`, `tool_calls`), and of the providers and SDKs that instrumentations record unchanged (OpenAI, Anthropic,
// AI SDK).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::cli {

// A requested call of a tool.
struct OtlpToolCall {
  std::string id;  // empty: not said
  std::string name;
};

// The parts of one message.
struct OtlpParts {
  std::vector<std::string> parts;  // JSON, according to the schema of a content
  std::vector<OtlpToolCall> tool_calls;
  std::string text = {};  // the first text
  bool whole = true;      // false: the parts do not represent all of the message
};

// Returns an attribute with messages as the JSON of a list of messages. `role` is the role of plain text, and of parts
// without a message. Empty: the attribute is absent or empty.
std::string otlp_message_list(const json::Value& any, std::string_view role);

// Converts a list of parts.
OtlpParts otlp_parts(const json::Value& list);
// Converts a message, or the body of an older gen_ai.*.message event.
OtlpParts otlp_message_parts(const json::Value& message);

// Returns the role of a message as message.added accepts it, `absent` for a message without a role. Sets `known` to
// false if the message has not this word.
std::string_view otlp_role(const json::Value& message, bool& known, std::string_view absent);

}  // namespace muniment::cli
