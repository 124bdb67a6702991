#include "adapters/import/translate/file_sources.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/files/file.hpp"
#include "base/json/readable_characters.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t examined_records_max = 200;  // records among which a part of a run is looked for

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

bool is_part(const TraceFormat& format, std::string_view text) {
  const ReadableText readable = with_readable_characters(text);
  const auto document = json::parse(std::string_view(readable.text));
  return document && format.recognises_part(document->root());
}

}  // namespace

Result<TraceSources> TraceSources::open(const std::string& path, const TraceFormat& format) {
  ASSIGN_OR_RETURN(const Shape shape, shape_of(path, format));
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open(path));
  TraceSources sources(path, std::move(reader));
  sources.shape_ = shape;
  return sources;
}

Result<TraceSources::Shape> TraceSources::shape_of(const std::string& path, const TraceFormat& format) {
  if (format.recognises_part == nullptr && format.unit != FileUnit::document) return Shape::records;
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open(path));
  std::size_t records = 0;
  for (std::size_t looked = 0; looked < examined_records_max && reader.goes_on(); ++looked) {
    const auto record = reader.next();
    if (record && !*record) break;
    ++records;
    if (!record) continue;
    if (format.recognises_part == nullptr && records > 1) break;
    if (format.recognises_part != nullptr && is_part(format, (*record)->text)) return Shape::parts;
  }
  return format.unit == FileUnit::document && records == 1 ? Shape::document : Shape::records;
}

Result<std::optional<TraceSource>> TraceSources::next() {
  if (shape_ != Shape::records) {
    if (std::exchange(is_done_, true)) return std::optional<TraceSource>();
    ASSIGN_OR_RETURN(std::string text, read_named(path_, import_record_bytes_max));
    return std::optional(TraceSource{stem_of(path_), std::move(text), 0, shape_ == Shape::parts});
  }
  ASSIGN_OR_RETURN(const std::optional<TraceRecord> record, reader_.next());
  if (!record) return std::optional<TraceSource>();
  return std::optional(
      TraceSource{fmt::format("{}-{}", stem_of(path_), record->number), std::string(record->text), record->line});
}

}  // namespace muniment::cli
