// Converts messages to content parts: those of the GenAI semantic conventions (`parts`), of chat completions
// (`content`, `tool_calls`), and of the providers and SDKs that instrumentations record unchanged (OpenAI, Anthropic,
// AI SDK).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::cli {

// A tool call that the model requested.
struct OtlpToolCall {
  std::string id;  // empty: none given
  std::string name;
};

// The parts of one message.
struct OtlpParts {
  std::vector<std::string> parts;  // JSON of content parts, as in the event schema
  std::vector<OtlpToolCall> tool_calls;
  std::string text = {};  // text of the first text part
  bool whole = true;      // false: the parts do not represent all of the message
};

// Converts an attribute with messages to a JSON list of messages. `role` applies to plain text and to parts outside a
// message. Returns an empty text if the attribute is absent or empty.
std::string otlp_message_list(const json::Value& any, std::string_view role);

// Converts a message, or the body of an older gen_ai.*.message event.
OtlpParts otlp_message_parts(const json::Value& message);

// Maps the role of a message to one that message.added accepts; returns `absent` if it has none. Sets `known` to false
// if the role is missing or had to be mapped.
std::string_view otlp_role(const json::Value& message, bool& known, std::string_view absent);

}  // namespace muniment::cli
