// Fuses ranked lists.
#include "retrieval/plan/fusion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

namespace muniment::retrieval {
namespace {

// The weight of a list among the lists of its lane.
double share_of(const Profile& profile, const RankedList& list) { return list.original ? profile.original_weight : 1; }

struct Scale {
  double low = 0, width = 0;
  double operator()(double score) const { return width > 0 ? (score - low) / width : 1; }
};

Scale scale_of(std::span<const Hit> hits) {
  double low = hits.front().score, high = low;
  for (const Hit& hit : hits) {
    low = std::min(low, hit.score);
    high = std::max(high, hit.score);
  }
  return {low, high - low};
}

double bonus_of(const Profile& profile, int best_rank) {
  if (best_rank == 1) return profile.rank_one_bonus;
  return best_rank <= 3 ? profile.rank_two_three_bonus : 0;
}

// Sums of floating-point numbers depend on their order, so the lists are sorted into a canonical order.
std::vector<const RankedList*> in_order(std::span<const RankedList> lists) {
  std::vector<const RankedList*> order;
  for (const RankedList& list : lists) {
    if (!list.hits.empty()) order.push_back(&list);
  }
  const auto before = [](const RankedList* a, const RankedList* b) {
    if (a->lane != b->lane) return a->lane < b->lane;
    if (a->original != b->original) return a->original;
    if (a->weight != b->weight) return a->weight > b->weight;
    return std::lexicographical_compare(
        a->hits.begin(), a->hits.end(), b->hits.begin(), b->hits.end(),
        [](const Hit& x, const Hit& y) { return std::pair(x.chunk, x.score) < std::pair(y.chunk, y.score); });
  };
  std::sort(order.begin(), order.end(), before);
  return order;
}

void note_lane(Fused& fused, std::string_view lane, double score) {
  for (auto& [name, best] : fused.lanes) {
    if (name == lane) {
      best = std::max(best, score);
      return;
    }
  }
  fused.lanes.emplace_back(lane, score);
}

}  // namespace

void discount_short(const Profile& profile, std::string_view lane, std::vector<Hit>& hits,
                    std::span<const std::uint32_t> words) {
  const auto noise = std::ranges::find(profile.noise, lane, &LaneWeight::lane);
  const double least = noise == profile.noise.end() ? std::numeric_limits<double>::lowest() : noise->weight;
  std::vector<bool> dropped(hits.size());
  for (std::size_t i = 0; i < hits.size(); i++) dropped[i] = hits[i].score <= least;
  for (const LaneWeight& rule : profile.short_chunk_words) {
    if (rule.lane != lane) continue;
    for (std::size_t i = 0; i < std::min(hits.size(), words.size()); i++) {
      const double count = words[i];  // an unknown length counts as so long that nothing changes
      hits[i].score *= count / (count + rule.weight);
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < hits.size(); i++) {
    if (!dropped[i]) hits[kept++] = hits[i];
  }
  hits.resize(kept);
  std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
    return a.score != b.score ? a.score > b.score : a.chunk < b.chunk;
  });
}

double standing_out(const Profile& profile, std::span<const Hit> hits) {
  if (hits.size() <= profile.standing_hits) return 1;
  const double span = hits.front().score - hits.back().score;
  return span > 0 ? (hits.front().score - hits[profile.standing_hits - 1].score) / span : 0;
}

void weigh_lanes(const Profile& profile, std::span<RankedList> lists) {
  if (profile.standing_hits == 0) return;
  std::map<std::string_view, double> weights;
  for (const RankedList& list : lists) {
    if (!list.original) continue;
    const auto power = std::ranges::find(profile.standing_powers, list.lane, &LaneWeight::lane);
    const double stands_out = standing_out(profile, list.hits);
    weights[list.lane] =
        list.weight * (power == profile.standing_powers.end() ? stands_out : std::pow(stands_out, power->weight));
  }
  double sum = 0;
  for (const auto& [lane, weight] : weights) sum += weight;
  if (sum <= 0) return;
  for (RankedList& list : lists) {
    if (const auto found = weights.find(list.lane); found != weights.end()) list.weight = found->second / sum;
  }
}

std::vector<Fused> fuse(const Profile& profile, std::span<const RankedList> lists) {
  const std::vector<const RankedList*> order = in_order(lists);
  std::map<std::string_view, double> shares;  // sum over all lists of a lane, including empty ones
  for (const RankedList& list : lists) shares[list.lane] += share_of(profile, list);

  std::unordered_map<ChunkId, Fused> found;
  for (const RankedList* list : order) {
    const Scale scale = scale_of(list->hits);
    const double share = share_of(profile, *list);
    for (std::size_t i = 0; i < list->hits.size(); i++) {
      const Hit& hit = list->hits[i];
      const int rank = static_cast<int>(i) + 1;
      Fused& fused = found[hit.chunk];
      fused.chunk = hit.chunk;
      fused.best_rank = fused.best_rank == 0 ? rank : std::min(fused.best_rank, rank);
      fused.score += profile.fusion == FusionKind::rrf ? list->weight * share / (profile.rrf_k + rank)
                                                       : list->weight * share / shares[list->lane] * scale(hit.score);
      note_lane(fused, list->lane, hit.score);
    }
  }

  std::vector<Fused> result;
  result.reserve(found.size());
  for (auto& [chunk, fused] : found) {
    fused.score += bonus_of(profile, fused.best_rank);
    result.push_back(std::move(fused));
  }
  std::sort(result.begin(), result.end(), [](const Fused& a, const Fused& b) {
    if (a.score != b.score) return a.score > b.score;
    return std::pair(a.best_rank, a.chunk) < std::pair(b.best_rank, b.chunk);
  });
  return result;
}

bool is_near(const Profile& profile, const Fused& fused, std::span<const RankedList> lists) {
  if (std::ranges::find(lists, "lexical", &RankedList::lane) == lists.end()) return true;
  const bool read = std::ranges::find(lists, "encoder", &RankedList::lane) != lists.end();
  return std::ranges::any_of(fused.lanes, [&](const auto& found) {
    const auto floor = std::ranges::find(profile.floors, found.first, &LaneWeight::lane);
    if (floor != profile.floors.end()) return found.second > floor->weight;
    return profile.floors.empty() || !read || found.first != "hash";
  });
}

double confidence_of(const Profile& profile, double score, std::span<const RankedList> lists) {
  double most = 1;
  if (profile.fusion == FusionKind::rrf) {
    most = profile.rank_one_bonus;
    for (const RankedList& list : lists) most += list.weight * share_of(profile, list) / (profile.rrf_k + 1);
  }
  return most > 0 ? std::clamp(score / most, 0.0, 1.0) : 0;
}

}  // namespace muniment::retrieval
