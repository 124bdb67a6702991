// Reads records of other tools: characters that strict JSON refuses are replaced, and spliced lines are split.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"
#include "base/json/readable_characters.hpp"

namespace muniment::cli {

// A record of a line, or the rest of a record that was cut off.
struct LineRecord {
  json::Value value;           // absent if the bytes are not readable
  std::string_view source;     // the record's bytes in the line
  std::uint64_t replaced = 0;  // number of replaced characters
  std::string why = {};        // the reason if the bytes are not readable
};

// Calls `take` for each record of a line in order. A line usually has one record. A line that several writers wrote
// at once has several, with rests of records between them. Values are valid during the call of `take`.
void read_line_records(std::string_view line, const std::function<void(const LineRecord&)>& take);

// Returns an event with the number of replaced characters; it keeps the record's bytes as an artifact.
ImportedEvent repaired_event(std::string kind, std::string_view format, std::int64_t line, std::uint64_t replaced,
                             std::string_view source);

}  // namespace muniment::cli
