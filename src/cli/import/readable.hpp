// JSON of other tools that strict JSON refuses for single characters, and lines on which several records stand.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "cli/import/events.hpp"

namespace muniment::cli {

struct ReadableText {
  std::string text;
  std::uint64_t replaced = 0;  // characters that became U+FFFD
  // Offsets in `text` and in the source from which both run in parallel; ascending, none for an equal length.
  std::vector<std::pair<std::size_t, std::size_t>> shifts = {};

  std::size_t source_offset(std::size_t offset) const;
};

// Replaces NUL, lone surrogates and bytes that are not UTF-8 by U+FFFD, and escapes other control characters in
// strings. Text that is readable stays as it is.
ReadableText with_readable_characters(std::string_view json);

// A record of a line, or what is left of one that was cut off.
struct LineRecord {
  json::Value value;           // absent: not readable
  std::string_view source;     // its bytes in the line
  std::uint64_t replaced = 0;  // characters of it
  std::string why = {};        // it is not readable
};

// The records of one line in their order: one, as a rule; several, with remains between them, on a line that was
// spliced together by writers that overtook each other. Values are valid during the call of `take`.
void read_line_records(std::string_view line, const std::function<void(const LineRecord&)>& take);

// A record of a file as a run; characters that strict JSON refuses are replaced, and an event says it. Errors:
// invalid_argument for what is no JSON even so, and those of `translate`.
Result<ImportedRun> translate_record(std::string_view text, std::string_view format, std::int64_t line,
                                     Result<ImportedRun> (*translate)(const json::Value& record));

// An event that says how many characters of a record were replaced, and keeps its bytes as an artifact.
ImportedEvent repaired_event(std::string kind, std::string_view format, std::int64_t line, std::uint64_t replaced,
                             std::string_view source);

}  // namespace muniment::cli
