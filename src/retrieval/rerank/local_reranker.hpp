// A reranker without a model: what the best candidates themselves say of each other and of the query. Pure, linear in
// their text, deterministic; measured in docs/benchmarks.md.
//
// Two things that a lane cannot know, since it sees one passage at a time:
//  - Coverage: the share of the query's words that a passage holds, each counting by how rare it is among the
//  candidates.
//    BM25 lets one word that is there often stand for another that is not there at all.
//  - Neighbours: passages about the same thing should have similar scores (the cluster hypothesis; as regularisation of
//    scores: Diaz 2005). Each takes a part of its score from the candidates nearest to it by tf-idf cosine.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

inline constexpr std::string_view local_reranker_identity = "local/1";  // another constant or rule is another number

struct LocalCandidate {
  std::string_view text;
  std::string_view language;  // ISO 639-1 or "none": chooses the stemmer
  double score = 0;           // 0…1, of the fusion
};

// Their new scores, 0…1, in their order.
std::vector<double> rerank_locally(std::string_view query, std::span<const LocalCandidate> candidates);

}  // namespace muniment::retrieval
