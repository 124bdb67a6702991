// The sample set: two documents that every daemon answers as the corpus `sample`, without ingestion, database or index.
// It is the deterministic fallback and the smoke test. Each is one passage, p0; everybody may see it.
#pragma once

#include <span>
#include <string_view>

#include "base/crypto/sha256.hpp"

namespace muniment::evidence {

inline constexpr std::string_view sample_corpus = "sample";

struct SampleDocument {
  std::string_view id;
  std::string_view revision;  // a label that came before there were hashes; the text under it is fixed
  std::string_view file;      // under artifacts/sample
  std::string_view title;
  std::string_view recorded_at;  // RFC 3339
  std::string_view text() const;
};

std::span<const SampleDocument> sample_documents();
const SampleDocument* find_sample(std::string_view id);  // nullptr: there is none

// Of a file of artifacts/sample, as it was when the binary was built; empty: there is none.
std::string_view embedded_sample(std::string_view file);

}  // namespace muniment::evidence
