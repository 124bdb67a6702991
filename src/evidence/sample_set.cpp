// The catalogue of the sample set.
#include "evidence/sample_set.hpp"

#include <algorithm>

namespace muniment::evidence {
namespace {

constexpr SampleDocument documents[] = {
    {"doc1", "h1", "doc1.md", "Retrieval throughput: caching and concurrency", "2025-01-01T00:00:00Z"},
    {"doc2", "h2", "doc2.md", "Pointer-first evidence", "2025-01-01T00:00:00Z"},
};

}  // namespace

std::string_view SampleDocument::text() const { return embedded_sample(file); }

std::span<const SampleDocument> sample_documents() { return documents; }

const SampleDocument* find_sample(std::string_view id) {
  const auto* found = std::ranges::find(documents, id, &SampleDocument::id);
  return found == std::end(documents) ? nullptr : found;
}

}  // namespace muniment::evidence
