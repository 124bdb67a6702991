// Result of translating one trace: a run and its events, not yet sent. Translations are pure functions of the source's
// bytes; record.hpp sends the result, and tests inspect it.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/import/source.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

// Used if a trace names no model or provider, instead of a guess.
inline constexpr std::string_view unknown_model = "unknown";

struct ImportedRun {
  std::string agent;
  std::string goal = {};  // empty: none
  std::vector<std::pair<std::string, std::string>> labels = {};
  std::string external_id = {};
  std::vector<ImportedEvent> events = {};
  std::string submission = {};  // patch stored as an artifact; empty: none
  RunEnd end = {};
  // Members of the record whose text is in the events in pieces, and not as a whole.
  std::vector<std::string_view> placed = {};
  std::uint64_t members = 0;  // strings, numbers and booleans in the source; 0: not counted
};

// Returns the parameters of run.start.
std::string start_params(const ImportedRun& run, const SourceFile& source, std::string_view format);

// Returns the JSON on one line, since sources are often indented and a request is one line.
std::string one_line_json(const json::Value& value);

// Writes a value of the source into a body: unchanged, or as a string if it is nested too deeply for a request.
void write_value(json::Writer& body, const json::Value& value);

// Writes the members of `object` that `placed` does not name as "x_source"; null members are left out. Returns false
// and writes nothing if there are none. A list instead of an object is written whole.
bool write_rest(json::Writer& body, const json::Value& object, std::span<const std::string_view> placed);
inline bool write_rest(json::Writer& body, const json::Value& object, std::initializer_list<std::string_view> placed) {
  return write_rest(body, object, std::span(placed.begin(), placed.size()));
}

// Writes a content part: {"type":"text","content":…} or {"type":"reasoning",…}.
void write_part(json::Writer& body, std::string_view type, std::string_view text);

// Returns a name of 1 to 256 bytes, as the schemas require.
std::string name_or(std::string_view name, std::string_view fallback);

// Writes the string, or the object if the string is the text of one, as in tool arguments.
void write_arguments(json::Writer& body, const json::Value& arguments);

}  // namespace muniment::cli
