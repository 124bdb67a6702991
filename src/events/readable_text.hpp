// What an event of a run says to a reader: its words without the JSON around them. It is what the corpus "run" is made
// of (docs/retrieval.md, "Runs"), and a function of type and body alone; docs/format.md specifies it for whoever
// verifies it.
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

// Between two parts of a text.
inline constexpr std::string_view part_separator = "\n\n";

struct TextPart {
  std::string text;
  std::optional<Uuid> artifact_id;  // then its bytes are the text
};

struct ReadableText {
  std::string name;  // who or what: the role, the tool, the error's class; may be empty
  bool failed = false;
  std::vector<TextPart> parts;  // none empty
};

// A reference counts only with a preview: then who erases its artifact erases this event too (store/logs/erasure.cpp).
ReadableText readable_text(std::string_view type, const json::Value& body);

}  // namespace muniment::events
