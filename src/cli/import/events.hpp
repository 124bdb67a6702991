// What a format's translation makes of one trace: a run and its events, nothing sent yet. Translations
// are pure functions of the source's bytes; record.hpp sends what they made, and tests look at it.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "cli/import/source.hpp"

namespace muniment::cli {

// Said where a trace names no model or provider: nothing is guessed.
inline constexpr std::string_view unknown_model = "unknown";

struct ImportedRun {
  std::string agent;
  std::string goal = {};  // empty: none
  std::vector<std::pair<std::string, std::string>> labels = {};
  std::string external_id = {};
  std::vector<ImportedEvent> events = {};
  std::string submission = {};  // a patch, kept as an artifact; empty: none
  RunEnd end = {};
};

// The parameters of run.start.
std::string start_params(const ImportedRun& run, const SourceFile& source, std::string_view format);

// JSON on one line. Sources are often indented, and a request is one line.
std::string one_line_json(const json::Value& value);

// A value of the source inside a body: as it is, or, where it is nested so deeply that the request
// around it would not be accepted, as the text of it.
void write_value(json::Writer& body, const json::Value& value);

// The members of `object` that `placed` does not name, as "x_source". False: there are none, and
// nothing is written. null says nothing and is left out.
bool write_rest(json::Writer& body, const json::Value& object, std::span<const std::string_view> placed);
inline bool write_rest(json::Writer& body, const json::Value& object, std::initializer_list<std::string_view> placed) {
  return write_rest(body, object, std::span(placed.begin(), placed.size()));
}

// A content part: {"type":"text","content":…} or {"type":"reasoning",…}.
void write_part(json::Writer& body, std::string_view type, std::string_view text);

// A name as a schema wants it: 1 to 256 bytes.
std::string name_or(std::string_view name, std::string_view fallback);

// What stands in the string, as an object where it is the text of one: tool arguments come this way.
void write_arguments(json::Writer& body, const json::Value& arguments);

}  // namespace muniment::cli
