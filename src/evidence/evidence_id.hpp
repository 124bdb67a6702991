// What evidence that lies somewhere is: the same passage is the same evidence wherever it is used, and has one id
// (docs/format.md, Evidence ids).
#pragma once

#include <optional>
#include <string>

#include "evidence/pointer.hpp"

namespace muniment::evidence {

struct EvidenceSource {
  std::string corpus_id;           // the corpus; for what lies in none: artifact, manifest, snapshot
  std::string index_id;            // how it was cut: the chunker's identity; event, bytes or sample where nothing was
  std::string chunk_id;            // what of it, with its revision where it has several
  std::optional<ByteSpan> span{};  // of its text; nullopt: an event as a whole

  std::string span_text() const;  // "b120-480", or empty
};

Uuid evidence_id(const EvidenceSource& source);

// "guide.md#p3?v=6c1f…": a pointer into a corpus, as evidence_pointer writes it, without the corpus.
std::string chunk_id_of(const Pointer& pointer);
std::string chunk_id_of(std::string_view pointer);

}  // namespace muniment::evidence
