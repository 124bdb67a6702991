// Blending: reranked candidates keep part of their fused rank. Pure.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/plan/profile.hpp"

namespace muniment::retrieval {

// A candidate at its fused rank; `rerank` is 0…1, nullopt if it was not reranked (or its reranker failed).
struct Reranked {
  ChunkId chunk = 0;
  double fused = 0;
  std::optional<double> rerank;
  double feedback = 0;  // −1…1: the mean of the feedback on it
};

struct Blended {
  ChunkId chunk = 0;
  double score = 0;
  std::size_t from = 0;  // its fused rank, from 1
};

// `candidates` are in their fused order. score = w · place + (1 − w) · rerank + feedback_weight · feedback, with w by
// rank (BlendStep); a candidate without a rerank score counts as 0. Ties keep their order.
//
// muniment-1: place = 1 / (1 + log2 rank), the same w for all ranks. It is monotone in both: a better rerank score
// never lowers the rank, and of two equal scores the better place stays ahead. kairos: place = 1 / rank with a w that
// decreases in steps: rank 1 is never displaced, and the first rank of a step may overtake the last one of the previous
// step with the same rerank score.
//
// If nothing was reranked, the fused scores remain.
std::vector<Blended> blend(const Profile& profile, std::span<const Reranked> candidates, double feedback_weight);

}  // namespace muniment::retrieval
