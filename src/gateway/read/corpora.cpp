// Finds a corpus for a caller, and reads and writes its documents.
#include "gateway/read/corpora.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/limits.hpp"
#include "evidence/pointer.hpp"
#include "gateway/services.hpp"
#include "retrieval/child/tool_child.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway {

bool may_see_corpus(const Caller& caller, std::string_view owner) { return caller.admin || owner == caller.actor; }

Result<store::CorpusRow> find_corpus(Call& call, std::string_view corpus) {
  ASSIGN_OR_RETURN(auto row, call.reader->corpus(corpus));
  if (row && may_see_corpus(call.caller, row->owner)) return *std::move(row);
  Error error(Errc::not_found, "no corpus " + std::string(corpus) + ". See: muniment corpus list");
  error.hidden = row.has_value();
  return error;
}

Result<std::int64_t> documents_known_upto(Call& call) {
  retrieval::DocumentFollower& documents = call.services.retrieval.documents();
  RETURN_IF_ERROR(documents.wait_for_changes(call.deadline));
  return documents.next_seq();
}

std::string name_of_document(std::string_view corpus, std::string_view document) {
  return fmt::format("document {}/{}", corpus, document);
}
std::string name_of_corpus(std::string_view corpus) { return fmt::format("corpus {}", corpus); }
std::string name_of_source(std::string_view source) { return fmt::format("source {}", source); }

void note_moved_on(Services& services, const Error& error) {
  // The appends in between are answered by now, so the tail of the log includes them.
  if (error.conflict == AppendConflict::moved_on)
    services.retrieval.documents().changed_at(services.tail.next_seq() - 1);
}

Result<retrieval::DocumentText> read_text(Call& call, std::string_view bytes, std::string_view name,
                                          std::string_view mime_type) {
  const bool plain = retrieval::looks_plain(bytes, name, mime_type);
  if (plain) return retrieval::read_document(bytes, name, mime_type);
  // A document that takes too long fails alone; the request ends with its own deadline.
  const Deadline own = std::chrono::steady_clock::now() + std::chrono::milliseconds(limits::document_reading_ms_max);
  auto document = retrieval::read_document_apart(bytes, name, mime_type, std::min(own, call.deadline));
  const bool too_long = !document && document.error().code == Errc::deadline_exceeded && own < call.deadline;
  if (!too_long) return document;
  return Error(Errc::too_large, fmt::format("reading {} takes over {} s; ingest it in parts", name,
                                            limits::document_reading_ms_max / 1'000));
}

void write_document(json::Writer& out, const store::DocumentRow& row, const std::optional<Time>* carried,
                    const std::string* summary) {
  out.begin_object().member("corpus", row.corpus).member("document", row.document).member("revision", row.revision);
  out.member("uri", evidence::evidence_pointer(row.corpus, row.document, "p0", row.revision)).member("seq", row.seq);
  out.member("hash", to_hex(row.hash))
      .member("artifact_id", row.artifact_id.text())
      .member("start_byte", row.start_byte)
      .member("size_bytes", row.size_bytes);
  if (row.text_artifact_id) out.member("text_artifact_id", row.text_artifact_id->text());
  out.member("mime_type", row.mime_type)
      .member("format", row.format)
      .member("language", row.language)
      .member("title", row.title);
  out.member("tags", row.tags).member("source", row.source);
  if (row.source_url) out.member("source_url", *row.source_url);
  out.member("trust", row.trust)
      .member("timestamp", format_time(row.document_time))
      .member("recorded_at", format_time(row.recorded_at));
  if (row.expires_at) out.member("expires_at", format_time(*row.expires_at));
  if (row.review_at) out.member("review_at", format_time(*row.review_at));
  if (!row.derived_from.empty()) out.member("derived_from", row.derived_from);
  if (summary != nullptr) out.member("summary", *summary);
  if (carried != nullptr) out.member("carried_over", true);
  if (carried != nullptr && *carried) out.member("first_recorded_at", format_time(**carried));
  out.member("chunker", row.chunker).member("chunks", row.chunks);
  if (row.valid_to) out.member("valid_to", *row.valid_to).member("ended_by", row.ended_by.value_or(""));
  if (row.removed_at) out.member("removed_at", *row.removed_at);
  out.end_object();
}

}  // namespace muniment::gateway
