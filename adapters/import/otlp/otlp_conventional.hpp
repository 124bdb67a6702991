// Rewrites a span so that its attributes have the names of the GenAI semantic conventions (otlp_names.hpp): renames
// attributes, joins messages that are spread over attributes, and moves the attributes of details events to the span.
// Attributes without a meaning, and those whose meaning the span already has, remain as they are.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>

#include "adapters/import/otlp/otlp_names.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

// Attributes of a log record with the details of the span's inference.
struct OtlpDetails {
  json::Value attributes;
  std::set<std::string> moved = {};  // set: names that the span has now, with the same values
};

// Returns the span as JSON; nullopt if it needs no change.
std::optional<std::string> otlp_conventional(const json::Value& span, OtlpKind kind, std::span<OtlpDetails> details);

}  // namespace muniment::cli
