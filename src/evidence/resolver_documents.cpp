// Resolves ev:// pointers to documents. The catalogue has the span of a passage and its hash at
// ingestion; each resolution reads and hashes the bytes.
#include <fmt/format.h>

#include "base/limits.hpp"
#include "evidence/resolver.hpp"
#include "evidence/sample_set.hpp"
#include "store/files/artifact_row.hpp"
#include "store/logs/erasure.hpp"

namespace muniment::evidence {
namespace {

constexpr std::int64_t hashed_document_bytes_max = 16 << 20;  // size of a document from which a byte span is read

store::Citation citation_of(const Pointer& pointer) {
  return {pointer.corpus, pointer.document, pointer.revision, pointer.fragment.starts_with('p') ? pointer.seq : -1};
}

// Returns whether the document was current at that seq.
bool was_current(const store::DocumentRow& row, std::int64_t as_of) {
  return row.seq <= as_of && (!row.valid_to || *row.valid_to > as_of);
}

}  // namespace

Status Resolver::read_documents_ahead(const std::vector<Pointer>& pointers) {
  std::vector<store::Citation> citations;
  std::vector<const Pointer*> asked;
  for (const Pointer& pointer : pointers) {
    if (pointer.corpus == "run" || pointer.corpus == sample_corpus || pointer.revision.empty()) continue;
    citations.push_back(citation_of(pointer));
    asked.push_back(&pointer);
  }
  if (citations.empty()) return success();
  ASSIGN_OR_RETURN(std::vector<store::CitedDocument> found,
                   sight_.known ? sight_.known->cited(*reader_, citations) : reader_->cited(citations));
  for (std::size_t i = 0; i < found.size(); ++i) documents_ahead_.emplace(asked[i]->text, std::move(found[i]));
  return success();
}

Result<store::CitedDocument> Resolver::cited(const Pointer& pointer) {
  if (auto ahead = documents_ahead_.extract(pointer.text); ahead && !in_earlier_log()) return std::move(ahead.mapped());
  ASSIGN_OR_RETURN(std::vector<store::CitedDocument> found, reader_->cited({citation_of(pointer)}));
  return std::move(found.front());
}

Result<bool> Resolver::was_removed(Resolution& out, const store::DocumentRow& row, std::string_view owner) const {
  std::optional<store::Revocation> revoked;
  if (!row.removed_at && in_earlier_log()) {
    std::vector<store::Reader*> readers = sight_.earlier;
    readers.insert(readers.begin(), &present_);
    std::vector<std::string> sources = row.sources;
    sources.push_back(row.source);
    ASSIGN_OR_RETURN(revoked, store::find_revocation(readers, reader_->log_no(), sources, owner));
  }
  if (!row.removed_at && !revoked) return false;
  if (revoked) {
    out.fail(Reason::not_found,
             fmt::format("its source was revoked (seq {} of log {})", revoked->seq, revoked->log_no));
  } else {
    out.fail(Reason::not_found, row.ended_by == "erased"
                                    ? "the document was erased"
                                    : fmt::format("its source was revoked (seq {})", *row.removed_at));
  }
  out.superseded = true;
  out.removed = true;
  return true;
}

Status Resolver::resolve_document(Resolution& out, bool with_text) {
  const Pointer& pointer = *out.parsed;
  ASSIGN_OR_RETURN(const store::CitedDocument found, cited(pointer));
  if (found.owner.empty() || !sight_.corpus(found.owner)) {
    out.hidden = !found.owner.empty();
    out.fail(Reason::not_found, "no corpus " + pointer.corpus);
    return success();
  }
  if (found.current && *found.current != pointer.revision) {
    out.current = evidence_pointer(pointer.corpus, pointer.document, pointer.fragment, *found.current);
  }
  if (!found.document) {
    out.expected = found.current;
    if (found.current) {
      out.fail(Reason::version_mismatch,
               fmt::format("{}/{} never had the revision {}", pointer.corpus, pointer.document, pointer.revision));
    } else {
      out.fail(Reason::not_found,
               fmt::format("{} has no document {} with that revision", pointer.corpus, pointer.document));
    }
    return success();
  }
  out.recorded = true;
  const store::DocumentRow& row = *found.document;
  if (!row.differs.empty()) {
    out.fail(Reason::hash_mismatch, row.differs);
    return success();
  }
  ASSIGN_OR_RETURN(const bool removed, was_removed(out, row, found.owner));
  if (removed) return success();
  if (found.erased) {  // the follower of the table of documents may not have reached the erasure yet
    out.was_erased("the document was erased");
    return success();
  }
  out.path = found.path;
  RETURN_IF_ERROR(pointer.fragment.starts_with('p') ? check_chunk(out, found) : check_bytes(out, found, with_text));
  const bool stands = as_of() ? was_current(row, *as_of()) : row.current();
  if (!out.ok() || stands) return success();
  out.superseded = true;
  if (row.ended_by == "retracted" && !found.current) {
    out.fail(Reason::not_found,
             fmt::format("the document was retracted (seq {}); read it with an earlier asof", *row.valid_to));
  } else {
    out.fail(Reason::version_mismatch,
             fmt::format("the document has a newer revision since seq {}", row.valid_to.value_or(row.seq)));
  }
  return success();
}

// The sample set is part of the binary: it cannot be missing or damaged.
void Resolver::resolve_sample(Resolution& out) {
  const Pointer& pointer = *out.parsed;
  const SampleDocument* document = find_sample(pointer.document);
  if (document == nullptr) return out.fail(Reason::not_found, "the sample set has no document " + pointer.document);
  out.recorded = true;
  const std::string_view text = document->text();
  if (pointer.revision != document->revision) {
    out.expected = document->revision;
    out.beyond = true;
    out.current = evidence_pointer(sample_corpus, document->id, pointer.fragment, document->revision);
    return out.fail(Reason::version_mismatch,
                    fmt::format("{}/{} never had the revision {}", sample_corpus, pointer.document, pointer.revision));
  }
  const auto size = static_cast<std::int64_t>(text.size());
  const auto span = pointer.fragment == "p0" ? std::optional(ByteSpan{0, size}) : parse_span(pointer.fragment);
  if (!span || span->end > size) {
    return out.fail_beyond(fmt::format("a sample document has one passage, p0; this one has {} bytes", size));
  }
  out.size_bytes = span->end - span->start;
  out.source = EvidenceSource{pointer.corpus, "sample", chunk_id_of(pointer), span};
  out.text = text.substr(static_cast<std::size_t>(span->start), static_cast<std::size_t>(*out.size_bytes));
  out.expected = to_hex(sha256(*out.text));
}

Status Resolver::check_chunk(Resolution& out, const store::CitedDocument& found) {
  const Pointer& pointer = *out.parsed;
  if (!found.chunk) {
    out.fail(Reason::not_found, fmt::format("the document has {} chunks (p0 is the first), and no p{}",
                                            found.document->chunks, pointer.seq));
    out.beyond = pointer.seq >= found.document->chunks;  // otherwise the chunk's row is lost
    return success();
  }
  const store::ChunkRow& chunk = *found.chunk;
  out.size_bytes = chunk.end_byte - chunk.start_byte;
  out.source = EvidenceSource{pointer.corpus, found.document->chunker, chunk_id_of(pointer),
                              ByteSpan{chunk.start_byte, chunk.end_byte}};
  out.expected = to_hex(chunk.hash);
  store::Difference difference;
  auto bytes = files_.read_hashed(found.path, found.document->text_start() + chunk.start_byte, *out.size_bytes,
                                  chunk.hash, &difference);
  if (!bytes) return out.not_that_file(std::move(bytes).error(), std::move(difference));
  out.text = *std::move(bytes);
  return success();
}

// A document's own bytes have a hash; an extracted text has the hash of its artifact.
Status Resolver::check_bytes(Resolution& out, const store::CitedDocument& found, bool with_text) {
  const store::DocumentRow& row = *found.document;
  const auto span = parse_span(out.parsed->fragment);
  if (!span) {
    out.fail_beyond("a fragment of a document is p<n> or b<start>-<end>");
    return success();
  }
  out.size_bytes = span->end - span->start;
  out.source = EvidenceSource{out.parsed->corpus, row.chunker, chunk_id_of(*out.parsed), span};
  if (row.text_artifact_id) {
    RETURN_IF_ERROR(check_text(out, *row.text_artifact_id, *span));
  } else {
    RETURN_IF_ERROR(check_own_bytes(out, found, *span));
  }
  if (!with_text || *out.size_bytes > static_cast<std::int64_t>(limits::artifact_inline_bytes_max)) out.text.reset();
  return success();
}

Status Resolver::check_text(Resolution& out, const Uuid& artifact_id, ByteSpan span) {
  ASSIGN_OR_RETURN(const auto artifact, artifact_row(artifact_id));
  if (artifact && store::is_erased(*artifact)) {
    out.was_erased("the document was erased");
    return success();
  }
  if (artifact && span.end <= artifact->size_bytes) return read_file(out, store::file_of(*artifact), span);
  out.fail(Reason::not_found, fmt::format("the document's text ends before byte {}", span.end));
  out.beyond = artifact.has_value();
  return success();
}

Status Resolver::check_own_bytes(Resolution& out, const store::CitedDocument& found, ByteSpan span) {
  const store::DocumentRow& row = *found.document;
  if (span.end > row.size_bytes) {
    out.fail_beyond(fmt::format("the document is {} bytes, the span ends at {}", row.size_bytes, span.end));
    return success();
  }
  if (row.size_bytes > hashed_document_bytes_max) {
    out.fail_beyond(fmt::format(
        "the document is {} bytes, too large for a byte span: use a chunk (p<n>) or its artifact", row.size_bytes));
    return success();
  }
  out.expected = to_hex(row.hash);
  store::Difference difference;
  auto bytes =
      files_.read_hashed(found.path, row.start_byte, row.size_bytes, row.hash, &difference, [&](std::string_view all) {
        return sha256({view(sha256(all)), row.chunker});
      });
  if (!bytes) return out.not_that_file(std::move(bytes).error(), std::move(difference));
  out.text = bytes->substr(static_cast<std::size_t>(span.start), static_cast<std::size_t>(*out.size_bytes));
  return success();
}

}  // namespace muniment::evidence
