#include "verify/indexes/index_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/crypto/sha256.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t language_bytes_max = 16;

enum Place : std::size_t {
  c_seq,
  c_corpus,
  c_document,
  c_format,
  c_trust,
  c_source,
  c_sources,
  c_tags,
  c_language,
  c_owner,
  c_origin,
  c_time,
  c_first_chunk,
  c_chunks,
  c_valid_to,
  c_removed_at
};
constexpr std::string_view columns =
    "d.seq, d.corpus, d.document, d.format, d.trust, d.source, array_to_json(d.sources)::text, array_to_json(d.tags)::text, d.language, "
    "coalesce(d.owner, c.owner, ''), d.origin, d.document_time, d.first_chunk, d.chunks, d.valid_to, d.removed_at";

std::vector<std::string> strings_in(const std::string& text) {
  std::vector<std::string> strings;
  const auto list = json::parse(text);
  if (!list) return strings;
  for (const json::Value item : list->root()) strings.push_back(item.string_or(""));
  return strings;
}

// Source: docs/retrieval.md, From a document to a card.
std::vector<std::string> labels_of(const Row& row) {
  const std::string corpus = row.text(c_corpus), document = row.text(c_document);
  std::vector<std::string> labels = {"corpus:" + corpus,
                                     "document:" + corpus + "/" + document,
                                     "type:" + row.text(c_format),
                                     "trust:" + row.text(c_trust),
                                     "source:" + row.text(c_source),
                                     "owner:" + row.text(c_owner),
                                     "language:" + row.text(c_language)};
  for (const std::string& tag : strings_in(row.text(c_tags))) labels.push_back("tag:" + tag);
  for (const std::string& source : strings_in(row.text(c_sources))) labels.push_back("source:" + source);
  if (corpus != "run") return labels;
  labels.push_back("run:" + document.substr(0, document.find('#')));
  const std::int64_t origin = row.integer(c_origin);
  labels.push_back(origin == 1 ? "origin:observed" : origin == 3 ? "origin:imported" : "origin:reported");
  return labels;
}

// Produces the terms that the lexical index stores.
std::vector<std::string> terms_of(const std::vector<std::string>& labels, const std::string& language) {
  std::vector<std::string> terms = {"G" + (language.empty() ? "none" : language.substr(0, language_bytes_max))};
  for (const std::string& label : labels) {
    const bool fits = label.size() <= limits::label_bytes_max && label.find('\0') == std::string::npos;
    terms.push_back(fits ? "L" + label : "H" + to_hex(sha256(label)));
  }
  return terms;
}

std::uint64_t number_of(const Hash& hash) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8 | hash[i];
  return number;
}

IndexedRevision revision_of(const Row& row, std::size_t corpus) {
  IndexedRevision revision;
  revision.seq = row.integer(c_seq);
  revision.first_chunk = row.integer(c_first_chunk);
  revision.chunks = row.integer(c_chunks);
  if (!row.null(c_valid_to)) revision.valid_to = row.integer(c_valid_to);
  if (!row.null(c_removed_at)) revision.removed_at = row.integer(c_removed_at);
  revision.time_us = row.time(c_time).micros;
  revision.corpus = corpus;
  const auto labels = labels_of(row);
  std::vector<std::uint64_t> numbers;
  for (const std::string& label : labels) numbers.push_back(label_number(label));
  revision.labels = digest_of_labels(std::move(numbers));
  revision.terms = digest_of_terms(terms_of(labels, row.text(c_language)));
  return revision;
}

}  // namespace

const IndexedRevision* IndexRows::of(std::int64_t chunk) const {
  const auto after = std::ranges::upper_bound(revisions, chunk, {}, &IndexedRevision::first_chunk);
  if (after == revisions.begin()) return nullptr;
  const IndexedRevision& revision = *std::prev(after);
  return chunk < revision.first_chunk + revision.chunks ? &revision : nullptr;
}

std::uint64_t digest_of_terms(std::vector<std::string> terms) {
  std::ranges::sort(terms);
  std::string text;
  std::string_view before;
  for (const std::string& term : terms) {
    if (term != before) text += fmt::format("{}:{}", term.size(), term);
    before = term;
  }
  return number_of(sha256(text));
}

std::uint64_t digest_of_labels(std::vector<std::uint64_t> labels) {
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  std::string text;
  for (const std::uint64_t label : labels) text += fmt::format("{:016x}", label);
  return number_of(sha256(text));
}

std::uint64_t label_number(std::string_view label) { return number_of(sha256(label)); }

Result<IndexRows> read_index_rows(Connection& connection, std::int64_t log_no) {
  IndexRows rows;
  ASSIGN_OR_RETURN(const auto there, connection.integer("SELECT 1 WHERE to_regclass('document') IS NOT NULL"));
  if (!there) {
    rows.next_seq = -1;
    return rows;
  }
  ASSIGN_OR_RETURN(
      const auto next,
      connection.integer(fmt::format("SELECT next_seq FROM follower WHERE log_no = {} AND name = 'document'", log_no)));
  rows.next_seq = next.value_or(0);
  std::map<std::string, std::size_t> places;
  RETURN_IF_ERROR(connection.start_copy(fmt::format(
      "SELECT {} FROM document d LEFT JOIN corpus c USING (log_no, corpus) WHERE d.log_no = {} AND d.chunks > 0 "
      "ORDER BY d.first_chunk",
      columns, log_no)));
  Row row;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return rows;
    const auto [place, is_new] = places.try_emplace(row.text(c_corpus), rows.corpora.size());
    if (is_new) rows.corpora.push_back(place->first);
    rows.revisions.push_back(revision_of(row, place->second));
    rows.chunks_end = std::max(rows.chunks_end, rows.revisions.back().first_chunk + rows.revisions.back().chunks);
  }
}

}  // namespace muniment::verify
