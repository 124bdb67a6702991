// Lists the columns of the table document that CorpusTables reads, with helpers to read and name a row.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "verify/postgres/postgres.hpp"
#include "verify/tables/corpus_history.hpp"

namespace muniment::verify {

inline constexpr std::string_view document_columns =
    "seq, corpus, document, revision, hash, artifact_id, start_byte, size_bytes, text_artifact_id, mime_type, format, language, title, "
    "array_to_json(tags)::text, source, array_to_json(sources)::text, source_url, trust, document_time, recorded_at, chunker, "
    "first_chunk, chunks, valid_to, ended_by, removed_at";
// The last two columns, which a database lacks if it is older than the corpus `run`.
inline constexpr std::string_view run_columns = ", owner, origin";
inline constexpr std::string_view no_run_columns = ", NULL::text, NULL::smallint";
enum DocumentColumn : std::size_t {
  c_seq,
  c_corpus,
  c_document,
  c_revision,
  c_hash,
  c_artifact,
  c_start,
  c_size,
  c_text_artifact,
  c_mime_type,
  c_format,
  c_language,
  c_title,
  c_tags,
  c_source,
  c_sources,
  c_source_url,
  c_trust,
  c_document_time,
  c_recorded_at,
  c_chunker,
  c_first_chunk,
  c_chunks,
  c_valid_to,
  c_ended_by,
  c_removed_at,
  c_owner,
  c_origin
};

inline std::vector<std::string> strings_of(const json::Value& list) {
  std::vector<std::string> strings;
  for (const json::Value item : list) strings.push_back(item.string_or(""));
  return strings;
}

inline std::vector<std::string> strings_in(const Row& row, std::size_t column) {
  const std::string text = row.text(column);
  const auto list = json::parse(text);
  return list ? strings_of(list->root()) : std::vector<std::string>();
}

inline std::string shown_list(const std::vector<std::string>& strings) { return "[" + joined(strings, ", ") + "]"; }

inline std::optional<std::int64_t> integer_if(const Row& row, std::size_t column) {
  return row.null(column) ? std::nullopt : std::optional(row.integer(column));
}

inline Text number_text(std::optional<std::int64_t> number) {
  return number ? Text(std::to_string(*number)) : std::nullopt;
}

inline Ends ends_in(const Row& row) {
  return {integer_if(row, c_valid_to), row.optional_text(c_ended_by), integer_if(row, c_removed_at)};
}

// Returns the first column that holds more about an erased document than permitted. Its names, spans and end may
// remain.
inline std::string left_in(const Row& row) {
  const std::pair<std::string_view, bool> columns[] = {
      {"hash", row.hex(c_hash).find_first_not_of('0') == std::string::npos},
      {"start_byte", row.integer(c_start) == 0},
      {"size_bytes", row.integer(c_size) == 0},
      {"mime_type", row.bytes(c_mime_type).empty()},
      {"format", row.bytes(c_format).empty()},
      {"language", row.bytes(c_language).empty()},
      {"title", row.bytes(c_title).empty()},
      {"tags", row.bytes(c_tags) == "[]"},
      {"source", row.bytes(c_source).empty()},
      {"sources", row.bytes(c_sources) == "[]"},
      {"source_url", row.null(c_source_url)},
      {"document_time", row.integer(c_document_time) == row.integer(c_recorded_at)}};
  for (const auto& [name, empty] : columns) {
    if (!empty) return std::string(name);
  }
  return "";
}

inline std::string name_of(const Revision& revision) { return revision.corpus + "/" + revision.document; }

}  // namespace muniment::verify
