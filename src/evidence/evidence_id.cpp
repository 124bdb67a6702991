// Computes evidence ids: a hash of the evidence's source.
#include "evidence/evidence_id.hpp"

#include <string_view>

#include <fmt/format.h>

namespace muniment::evidence {

std::string EvidenceSource::span_text() const {
  return span ? fmt::format("b{}-{}", span->start, span->end) : std::string();
}

Uuid evidence_id(const EvidenceSource& source) {
  std::string name;  // length-prefixed, so that two sources never have the same encoding
  for (const std::string& part :
       {std::string("evidence"), source.corpus_id, source.index_id, source.chunk_id, source.span_text()}) {
    name += fmt::format("{}:{}", part.size(), part);
  }
  return make_uuid_v8(name);
}

std::string chunk_id_of(const Pointer& pointer) {
  return chunk_id_of(evidence_pointer(pointer.corpus, pointer.document, pointer.fragment, pointer.revision));
}

std::string chunk_id_of(std::string_view pointer) {
  constexpr std::size_t corpus_at = std::string_view("ev://").size();
  return std::string(pointer.substr(pointer.find('/', corpus_at) + 1));
}

}  // namespace muniment::evidence
