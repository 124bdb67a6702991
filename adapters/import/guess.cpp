#include "adapters/import/guess.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "adapters/import/format.hpp"
#include "adapters/import/records.hpp"
#include "base/json/readable_characters.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t guessed_records_max = 200;  // records examined to detect the format

struct FoundFormats {
  std::vector<std::string_view> formats;  // in order of first appearance
  bool is_empty = true;                   // true: no record
};

}  // namespace

std::string_view guessed_format(const json::Value& record) {
  const TraceFormat* const format = format_of_record(record);
  return format == nullptr ? std::string_view() : format->name;
}

std::string looks_like(const json::Value& record) {
  const std::string_view format = guessed_format(record);
  return format.empty() ? std::string() : fmt::format("; it looks like {} (--format {})", format, format);
}

std::string text_looks_like(std::string_view text) {
  const auto document = json::parse(text);
  return document ? looks_like(document->root()) : std::string();
}

namespace {

Result<FoundFormats> found_formats(const std::string& path) {
  FoundFormats found;
  // The first lines of a session may be invalid or not show their format.
  for (const auto open : {&RecordReader::open, &RecordReader::open_lines}) {
    ASSIGN_OR_RETURN(RecordReader reader, open(path));
    for (std::size_t looked = 0; looked < guessed_records_max && reader.goes_on(); ++looked) {
      const auto record = reader.next();
      if (!record && is_halting(record.error().code)) return record.error();
      if (!record) continue;
      if (!*record) break;
      found.is_empty = false;
      const ReadableText readable = with_readable_characters((*record)->text);
      const auto document = json::parse(std::string_view(readable.text));
      const std::string_view format = document ? guessed_format(document->root()) : std::string_view();
      if (!format.empty() && std::ranges::find(found.formats, format) == found.formats.end())
        found.formats.push_back(format);
    }
    if (!found.formats.empty()) break;
  }
  return found;
}

}  // namespace

Result<std::string_view> sniffed_format(const std::string& path) {
  ASSIGN_OR_RETURN(const FoundFormats found, found_formats(path));
  if (!found.formats.empty()) return found.formats.front();
  if (found.is_empty) return Error(Errc::invalid_argument, std::string(no_record));
  std::string names;
  for (const TraceFormat& format : trace_formats())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  return Error(Errc::invalid_argument,
               fmt::format("unknown format. Name it with --format ({}), or convert the file to the format messages "
                           "(docs/events.md)",
                           names));
}

Status refuse_other_format(const std::string& path, std::string_view format) {
  ASSIGN_OR_RETURN(const FoundFormats found, found_formats(path));
  if (std::ranges::find(found.formats, format) != found.formats.end()) return success();
  if (found.is_empty) return Error(Errc::invalid_argument, std::string(no_record));
  if (found.formats.empty()) {
    return Error(Errc::invalid_argument, fmt::format("this is not {}: none of the first {} lines has that format",
                                                     format, guessed_records_max));
  }
  const std::string_view other = found.formats.front();
  return Error(Errc::invalid_argument,
               fmt::format("this is not {}; it looks like {} (--format {})", format, other, other));
}

}  // namespace muniment::cli
