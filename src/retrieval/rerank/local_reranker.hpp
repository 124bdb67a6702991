// A reranker without a model: compares the best candidates with each other and with the query. Pure, linear in their
// text, deterministic; measured in docs/benchmarks.md.
//
// It uses two properties that a lane cannot know, because a lane sees one passage at a time:
// - Coverage: the share of the query's words that a passage contains, each weighted by its rarity among the candidates.
// In BM25, a frequent word can compensate for a missing one.
// - Neighbours: passages on the same topic should have similar scores (the cluster hypothesis; as regularisation of
// scores: Diaz 2005). Each takes part of its score from the nearest candidates by tf-idf cosine.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

inline constexpr std::string_view local_reranker_identity = "local/1";  // changes with every constant and rule

struct LocalCandidate {
  std::string_view text;
  std::string_view language;  // ISO 639-1 or "none": selects the stemmer
  double score = 0;           // score of the fusion, 0…1
};

// Returns their new scores, 0…1, in their order.
std::vector<double> rerank_locally(std::string_view query, std::span<const LocalCandidate> candidates);

}  // namespace muniment::retrieval
