// The columns of the table document as CorpusTables reads them, and the ways in which its files read and name a row.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "verify/corpus_history.hpp"
#include "verify/postgres.hpp"

namespace muniment::verify {

inline constexpr std::string_view document_columns =
    "seq, corpus, document, revision, hash, artifact_id, start_byte, size_bytes, text_artifact_id, mime_type, format, language, title, "
    "array_to_json(tags)::text, source, array_to_json(sources)::text, source_url, trust, document_time, recorded_at, chunker, "
    "first_chunk, chunks, valid_to, ended_by, removed_at";
// The last two, which a database from before runs were a corpus has not.
inline constexpr std::string_view run_columns = ", owner, origin";
inline constexpr std::string_view no_run_columns = ", NULL::text, NULL::smallint";
enum DocumentColumn : std::size_t {
  c_seq, c_corpus, c_document, c_revision, c_hash, c_artifact, c_start, c_size, c_text_artifact, c_mime_type, c_format, c_language,
  c_title, c_tags, c_source, c_sources, c_source_url, c_trust, c_document_time, c_recorded_at, c_chunker, c_first_chunk, c_chunks,
  c_valid_to, c_ended_by, c_removed_at, c_owner, c_origin
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

inline Text number_text(std::optional<std::int64_t> number) { return number ? Text(std::to_string(*number)) : std::nullopt; }

inline Ends ends_in(const Row& row) { return {integer_if(row, c_valid_to), row.optional_text(c_ended_by), integer_if(row, c_removed_at)}; }

inline std::string name_of(const Revision& revision) { return revision.corpus + "/" + revision.document; }

}  // namespace muniment::verify
