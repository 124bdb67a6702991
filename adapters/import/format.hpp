// Table of the formats that `muniment import` reads. A format is one file with its translation and one row of the table
// (format.cpp); detection, run ids, replacement of damaged characters, progress and the count of unrecognised members
// are shared.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// How the records of a file become runs.
enum class FileUnit : std::uint8_t {
  records,   // each record of a list or of lines is translated alone, and named "FILE-NUMBER"
  document,  // the same, but a file that is one JSON object is named "FILE"
  stream,    // a reader of the format's own, in bounded memory
};

struct TraceFormat {
  std::string_view name;  // as in --format
  std::string_view description;
  FileUnit unit;
  // Returns whether a record is of this format.
  bool (*recognises)(const json::Value& record);
  // Translates a record into its runs. A pure function; null for a stream. A member with an unexpected type is not an
  // error: the translation skips it, and the importer keeps it. Errors: invalid_argument if the record is of another
  // format.
  Result<std::vector<ImportedRun>> (*translate)(const json::Value& record) = nullptr;
  // If the records of a file are the parts of one run: recognises a part, and translates all of them. Null: none.
  bool (*recognises_part)(const json::Value& record) = nullptr;
  Result<ImportedRun> (*translate_parts)(const std::vector<json::Value>& records) = nullptr;
};

std::span<const TraceFormat> trace_formats();

// Returns nullptr for an unknown name.
const TraceFormat* find_format(std::string_view name);

// Returns the format of a record, or nullptr.
const TraceFormat* format_of_record(const json::Value& record);

}  // namespace muniment::cli
