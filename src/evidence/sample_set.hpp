// The sample set: two documents that every daemon serves as the corpus `sample`, without ingestion, database or index.
// It is the deterministic fallback and the smoke test. Each document has one passage, p0, that every caller may read.
#pragma once

#include <span>
#include <string_view>

#include "base/crypto/sha256.hpp"

namespace muniment::evidence {

inline constexpr std::string_view sample_corpus = "sample";

struct SampleDocument {
  std::string_view id;
  std::string_view revision;  // a fixed label instead of a hash; its text never changes
  std::string_view file;      // under artifacts/sample
  std::string_view title;
  std::string_view recorded_at;  // RFC 3339
  std::string_view text() const;
};

std::span<const SampleDocument> sample_documents();
const SampleDocument* find_sample(std::string_view id);  // nullptr: unknown id

// Returns the contents of a file of artifacts/sample at the time of the build; empty if there is no such file.
std::string_view embedded_sample(std::string_view file);

}  // namespace muniment::evidence
