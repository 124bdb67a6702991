// Checks and prepares a document for a corpus.
#include "retrieval/corpus/ingest.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "evidence/pointer.hpp"
#include "retrieval/answer/statement.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t heading_bytes_max = 300;  // limit in an event and in the chunk table

std::string_view view_of(const Hash& hash) { return {reinterpret_cast<const char*>(hash.data()), hash.size()}; }

Status check_text(std::string_view what, std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    return Error(Errc::too_large, fmt::format("{} is {} bytes, limit {}. Shorten it.", what, text.size(), bytes_max));
  }
  const bool control =
      std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (control) return Error(Errc::invalid_argument, std::string(what) + " holds control characters.");
  return success();
}

Status check_about(const DocumentToIngest& about) {
  RETURN_IF_ERROR(check_corpus_name(about.corpus));
  if (about.id.empty()) return Error(Errc::invalid_argument, "a document needs an id.");
  RETURN_IF_ERROR(check_text("the document's id", about.id, limits::document_id_bytes_max));
  RETURN_IF_ERROR(check_text("title", about.title, limits::document_title_bytes_max));
  RETURN_IF_ERROR(check_text("source", about.source, evidence::pointer_bytes_max));
  RETURN_IF_ERROR(check_text("source_url", about.source_url, evidence::pointer_bytes_max));
  for (const std::string& tag : about.tags) RETURN_IF_ERROR(check_text("a tag", tag, limits::document_tag_bytes_max));
  const bool letters = std::ranges::all_of(about.language, [](char c) { return c >= 'a' && c <= 'z'; });
  const bool coded = about.language.size() == 2 || about.language.size() == 3 || about.language == "none";
  if (!about.language.empty() && (!letters || !coded)) {
    return Error(
        Errc::invalid_argument,
        fmt::format("language: \"{}\" is not an ISO 639 code. Write en, de, … or none.", about.language.substr(0, 20)));
  }
  const bool plain = std::ranges::all_of(about.label, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
  if (!plain || about.label.size() > limits::revision_bytes_max) {
    return Error(Errc::invalid_argument,
                 fmt::format("revision: letters, digits, . _ and -, at most {} of them.", limits::revision_bytes_max));
  }
  return success();
}

std::string chunk_list(const PreparedDocument& document) {
  json::Writer out;
  out.begin_array();
  for (std::size_t i = 0; i < document.text.chunks.size(); ++i) {
    const Chunk& chunk = document.text.chunks[i];
    out.begin_array().number(chunk.start).number(chunk.end).string(to_hex(document.chunk_hashes[i]));
    if (!chunk.heading.empty()) out.string(summary_of(chunk.heading, heading_bytes_max));
    out.end_array();
  }
  return std::move(out.end_array()).text();
}

}  // namespace

Status check_corpus_name(std::string_view corpus) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  if (corpus.empty() || corpus.size() > limits::corpus_name_bytes_max || !std::ranges::all_of(corpus, allowed) ||
      corpus[0] == '.' || corpus[0] == '-') {
    return Error(
        Errc::invalid_argument,
        fmt::format(
            "corpus \"{}\": a name has letters, digits, . _ and -, begins with neither . nor -, and has at most {} bytes.",
            corpus.substr(0, 100), limits::corpus_name_bytes_max));
  }
  if (corpus == "run" || corpus == "sample")
    return Error(Errc::denied, fmt::format("the corpus {} is Muniment's own. Choose another name.", corpus));
  return success();
}

Hash revision_hash(const Hash& bytes_hash, std::string_view chunker) { return sha256({view_of(bytes_hash), chunker}); }

Result<PreparedDocument> prepare_document(DocumentToIngest about, std::string_view bytes, DocumentText text) {
  RETURN_IF_ERROR(check_about(about));
  PreparedDocument out;
  out.about = std::move(about);
  out.text = std::move(text);
  if (!out.about.language.empty()) out.text.language = out.about.language;
  if (out.text.chunks.size() > limits::chunks_per_document_max) {
    Error error(Errc::too_large, fmt::format("{} has {} chunks, limit {}. Ingest it in parts.", out.about.id,
                                             out.text.chunks.size(), limits::chunks_per_document_max));
    error.limit = static_cast<std::int64_t>(limits::chunks_per_document_max);
    return error;
  }
  out.size_bytes = static_cast<std::int64_t>(bytes.size());
  out.bytes_hash = sha256(bytes);
  out.hash = revision_hash(out.bytes_hash, chunker_identity());
  out.revision = out.about.label.empty() ? to_hex(out.hash).substr(0, evidence::revision_digits) : out.about.label;
  if (out.about.title.empty())
    out.about.title =
        summary_of(out.text.title.empty() ? out.about.id : out.text.title, limits::document_title_bytes_max);
  const std::string_view all = out.text.as_is ? bytes : std::string_view(out.text.text);
  for (const Chunk& chunk : out.text.chunks) {
    out.chunk_hashes.push_back(
        sha256(all.substr(static_cast<std::size_t>(chunk.start), static_cast<std::size_t>(chunk.end - chunk.start))));
  }
  out.chunk_list = chunk_list(out);
  return out;
}

std::string revised_body(const PreparedDocument& document, const DocumentPlace& place) {
  const DocumentToIngest& about = document.about;
  std::string uri = evidence::evidence_pointer(about.corpus, about.id, "", "");
  uri.resize(uri.find('#'));
  if (place.in_frame) uri = evidence::document_uri(about.corpus, about.id);
  json::Writer out;
  out.begin_object()
      .member("uri", uri)
      .member("corpus", about.corpus)
      .member("document", about.id)
      .member("revision", document.revision);
  out.member("hash", to_hex(document.hash)).member("bytes_hash", to_hex(document.bytes_hash));
  if (!about.previous.empty()) out.member("previous", about.previous);
  if (!place.in_frame) out.member("artifact_id", place.artifact_id.text()).member("start_byte", place.start_byte);
  out.member("size_bytes", document.size_bytes);
  if (place.text_artifact_id) out.member("text_artifact_id", place.text_artifact_id->text());
  out.member("mime_type", about.mime_type)
      .member("format", name_of(document.text.format))
      .member("language", document.text.language);
  out.member("title", about.title).member("source", about.source);
  if (!about.tags.empty()) out.member("tags", about.tags);
  if (!about.sources.empty()) out.member("sources", about.sources);
  if (!about.derived_from.empty()) out.member("derived_from", about.derived_from);
  if (!about.source_url.empty()) out.member("source_url", about.source_url);
  if (about.timestamp) out.member("timestamp", format_time(*about.timestamp));
  if (about.expires_at) out.member("expires_at", format_time(*about.expires_at));
  if (about.review_at) out.member("review_at", format_time(*about.review_at));
  out.member("trust", about.trust).member("chunker", chunker_identity());
  if (place.chunks_artifact_id) {
    out.member("chunks_artifact_id", place.chunks_artifact_id->text());
  } else {
    out.raw_member("chunks", document.chunk_list);
  }
  return std::move(out.end_object()).text();
}

std::optional<FactSearch> search_of_fact(const PreparedDocument& document, std::string_view bytes) {
  const std::string_view text = document.text.as_is ? bytes : std::string_view(document.text.text);
  if (document.text.chunks.size() != 1 || text.size() > limits::summary_bytes_max) return std::nullopt;
  FactSearch search{{}, statement_of(text, document.text.language).key, document.about.id};
  for (const char c : text) search.question.text += c == ':' || c == '"' ? ' ' : c;  // its words, without markup
  search.question.corpora = {document.about.corpus};
  search.question.mode = Mode::lexical;
  return search;
}

std::vector<std::string> equal_facts(const FactSearch& search, const std::vector<Card>& cards) {
  std::vector<std::string> known;
  for (const Card& card : cards) {
    const bool same = card.whole && !search.key.empty() && statement_of(card.text, card.language).key == search.key;
    if (same && card.document != search.document) known.push_back(card.id);
  }
  return known;
}

}  // namespace muniment::retrieval
