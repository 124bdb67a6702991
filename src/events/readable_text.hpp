// Extracts the readable text of an event: its words without the JSON around them. The corpus "run" consists of these
// texts (docs/retrieval.md, "Runs"). The text depends only on type and body; docs/format.md specifies it for verifiers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/json/json.hpp"

namespace muniment::events {

// The types that have a text.
inline constexpr std::string_view readable_types[] = {
    "command.ended", "command.started", "context.compacted", "error.raised",     "message.added", "model.answered",
    "run.ended",     "run.halted",      "step.ended",        "thought.recorded", "tool.called",   "tool.returned"};
bool is_readable(std::string_view type);

// Separates two parts of a text.
inline constexpr std::string_view part_separator = "\n\n";

struct TextPart {
  std::string text;
  std::optional<Uuid> artifact_id;  // set if the text is in the artifact's bytes
};

struct ReadableText {
  std::string name;  // the role, the tool or the error's class; may be empty
  bool failed = false;
  std::vector<TextPart> parts;  // each part is non-empty
};

// A reference counts only with a preview, so that erasing its artifact also erases this event (store/logs/erasure.cpp).
ReadableText readable_text(std::string_view type, const json::Value& body);

}  // namespace muniment::events
