// Blending: candidates that were reranked keep some of their place. Pure.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/plan/profile.hpp"

namespace muniment::retrieval {

// A candidate in its fused place; `rerank` is 0…1, nullopt where it was not reranked (or its reranker failed).
struct Reranked {
  ChunkId chunk = 0;
  double fused = 0;
  std::optional<double> rerank;
  double feedback = 0;  // −1…1: the mean of what was said of it
};

struct Blended {
  ChunkId chunk = 0;
  double score = 0;
  std::size_t from = 0;  // its rank before, from 1
};

// `candidates` in their fused order. score = w · place + (1 − w) · rerank, with w by rank (BlendStep), then
// + feedback_weight · feedback; a candidate without a rerank score has 0 there. Ties stay in their order.
//
// muniment-1: place = 1 / (1 + log2 rank), w the same for all ranks. It is monotone both ways: a better rerank
// score never ranks lower, and of two equal ones the better place stays ahead.
// kairos: place = 1 / rank, and a w that falls in steps: rank 1 is never displaced, and the first rank of a
// step may pass the last one of the step before with the same rerank score.
//
// Where nothing was reranked the fused scores stay what they were.
std::vector<Blended> blend(const Profile& profile, std::span<const Reranked> candidates, double feedback_weight);

}  // namespace muniment::retrieval
