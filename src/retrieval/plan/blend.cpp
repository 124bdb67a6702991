// Blends the places of candidates with their rerank scores.
#include "retrieval/plan/blend.hpp"

#include <algorithm>
#include <cmath>

namespace muniment::retrieval {
namespace {

double weight_at(const Profile& profile, std::size_t rank) {
  for (const BlendStep& step : profile.blend) {
    if (rank <= step.rank_max) return step.weight;
  }
  return 1;
}

double place_of(const Profile& profile, std::size_t rank) {
  const auto place = static_cast<double>(rank);
  return profile.fusion == FusionKind::rrf ? 1 / place : 1 / (1 + std::log2(place));
}

}  // namespace

std::vector<Blended> blend(const Profile& profile, std::span<const Reranked> candidates, double feedback_weight) {
  const bool reranked =
      std::any_of(candidates.begin(), candidates.end(), [](const Reranked& c) { return c.rerank.has_value(); });
  std::vector<Blended> result;
  result.reserve(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); i++) {
    const Reranked& candidate = candidates[i];
    double score = candidate.fused;
    if (reranked) {
      const double weight = weight_at(profile, i + 1);
      score = weight * place_of(profile, i + 1) + (1 - weight) * std::clamp(candidate.rerank.value_or(0), 0.0, 1.0);
    }
    result.push_back({candidate.chunk, score + feedback_weight * candidate.feedback, i + 1});
  }
  std::stable_sort(result.begin(), result.end(), [](const Blended& a, const Blended& b) { return a.score > b.score; });
  return result;
}

}  // namespace muniment::retrieval
