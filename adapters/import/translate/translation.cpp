#include "adapters/import/translate/translation.hpp"

#include <fmt/format.h>

#include <utility>

#include "adapters/import/guess.hpp"
#include "adapters/import/readable.hpp"
#include "adapters/import/translate/coverage.hpp"
#include "base/crypto/sha256.hpp"

namespace muniment::cli {
namespace {

// A record as JSON that can be parsed.
struct ReadableRecord {
  std::string text;
  std::uint64_t replaced = 0;
};

Result<ReadableRecord> readable(std::string_view text) {
  const auto strict = json::parse(text);
  if (strict) return ReadableRecord{std::string(text)};
  ReadableText repaired = with_readable_characters(text);
  if (!json::parse(std::string_view(repaired.text))) return strict.error();
  return ReadableRecord{std::move(repaired.text), repaired.replaced};
}

// Joins the records of the lines of a file to the text of one list. An event keeps a line that is not JSON.
ReadableRecord list_of_lines(std::string_view lines, std::string_view format, std::vector<ImportedEvent>& unreadable) {
  ReadableRecord list{"["};
  std::int64_t number = 0;
  const auto take = [&](const LineRecord& record) {
    if (!record.value) {
      json::Writer body;
      body.begin_object().member("line", number).member("error", record.why).end_object();
      unreadable.push_back({fmt::format("unreadable-{}-{}", number, unreadable.size()),
                            source_type(format, "unreadable"),
                            {},
                            std::move(body).text()});
      unreadable.back().blobs.push_back({"application/octet-stream", std::string(record.source)});
      return;
    }
    if (list.text.size() > 1) list.text.push_back(',');
    list.text += record.replaced > 0 ? with_readable_characters(record.source).text : std::string(record.source);
    list.replaced += record.replaced;
  };
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    ++number;
    const std::string_view line = lines.substr(0, end);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) read_line_records(line, take);
    lines = end == std::string_view::npos ? std::string_view() : lines.substr(end + 1);
  }
  list.text.push_back(']');
  return list;
}

Result<ImportedRun> translate_list(const TraceFormat& format, const json::Value& list) {
  std::vector<json::Value> records;
  for (const json::Value record : list) records.push_back(record);
  return format.translate_parts(records);
}

// A run of a record of the format that the translation cannot read: an event keeps the record.
ImportedRun kept_record(const TraceFormat& format, const json::Value& record) {
  ImportedRun run{.agent = std::string(format.name)};
  json::Writer body;
  body.begin_object().member("part", "record");
  write_rest(body, record, {});
  run.events.push_back({"record", source_type(format.name, "source"), {}, std::move(body.end_object()).text()});
  run.end = {std::string(unknown_end), "the record was not understood"};
  return run;
}

Result<std::vector<ImportedRun>> translate_record(const TraceFormat& format, const json::Value& record) {
  if (format.translate != nullptr) {
    auto runs = format.translate(record);
    if (runs || format_of_record(record) != &format) return runs;
    return std::vector<ImportedRun>{kept_record(format, record)};
  }
  return Error(Errc::invalid_argument, fmt::format("this is not a record of {}", format.name));
}

Result<std::vector<ImportedRun>> translate_text(const TraceFormat& format, const TraceSource& source) {
  std::vector<ImportedEvent> unreadable;
  auto record = readable(source.text);
  if (source.is_parts && (!record || record->text.find_first_not_of(" \t\r\n") == std::string::npos ||
                          record->text[record->text.find_first_not_of(" \t\r\n")] != '['))
    record = list_of_lines(source.text, format.name, unreadable);
  if (!record) return record.error();
  ASSIGN_OR_RETURN(const json::Document document, json::parse(std::string_view(record->text)));
  std::vector<ImportedRun> runs;
  if (source.is_parts) {
    ASSIGN_OR_RETURN(ImportedRun run, translate_list(format, document.root()));
    runs.push_back(std::move(run));
  } else {
    auto translated = translate_record(format, document.root());
    if (!translated) return Error(translated.error().code, translated.error().message + looks_like(document.root()));
    runs = *std::move(translated);
  }
  keep_lost_texts(document.root(), format.name, runs);
  std::vector<ImportedEvent>& events = runs.front().events;
  for (ImportedEvent& event : unreadable) events.push_back(std::move(event));
  if (record->replaced > 0) {
    events.push_back(
        repaired_event("repaired", format.name, static_cast<std::int64_t>(source.line), record->replaced, source.text));
  }
  runs.front().members = members_in(document.root());
  return runs;
}

}  // namespace

Result<std::vector<TranslatedRun>> translate_source(const TraceFormat& format, const TraceSource& source) {
  ASSIGN_OR_RETURN(std::vector<ImportedRun> runs, translate_text(format, source));
  const std::string hash = to_hex(sha256(source.text));
  std::vector<TranslatedRun> translated;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string name = runs.size() == 1 ? source.name : fmt::format("{}-{}", source.name, i + 1);
    if (runs[i].external_id.empty() && source.line == 0) runs[i].external_id = source.name;
    translated.push_back({{name, hash, source.text}, std::move(runs[i])});
  }
  return translated;
}

}  // namespace muniment::cli
