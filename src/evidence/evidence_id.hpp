// The id of evidence that has a location: a passage has the same evidence id wherever it is used (docs/format.md,
// Evidence ids).
#pragma once

#include <optional>
#include <string>

#include "evidence/pointer.hpp"

namespace muniment::evidence {

struct EvidenceSource {
  std::string corpus_id;           // the corpus; outside of a corpus: artifact, manifest, snapshot
  std::string index_id;            // the chunker's identity; event, bytes or sample if the source was not chunked
  std::string chunk_id;            // the part of the source, with the revision if there can be several
  std::optional<ByteSpan> span{};  // in the source's text; nullopt: a whole event

  std::string span_text() const;  // "b120-480", or empty
};

Uuid evidence_id(const EvidenceSource& source);

// Returns the part of a corpus pointer after the corpus, in the form that evidence_pointer writes:
// "guide.md#p3?v=6c1f…".
std::string chunk_id_of(const Pointer& pointer);
std::string chunk_id_of(std::string_view pointer);

}  // namespace muniment::evidence
