// Fusion: several ranked lists become one. Pure functions; the order of the lists does not matter.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/plan/profile.hpp"

namespace muniment::retrieval {

// What a lane answered to the query or to one of its expansions: best first, no chunk twice.
struct RankedList {
  std::string_view lane;
  double weight = 1;     // of the lane
  bool original = true;  // not an expansion's
  std::span<const Hit> hits;
};

// Of few words a vector has little to go by, and whatever they are is all of it: short chunks lie nearer to a query
// than they should. So a lane's score counts for words / (words + n) of it, with the profile's n for the lane.
// `words` of each hit, as LexicalReader::words_of has them; sorts again, ties by id.
void discount_short(const Profile& profile, std::string_view lane, std::vector<Hit>& hits,
                    std::span<const std::uint32_t> words);

struct Fused {
  ChunkId chunk = 0;
  double score = 0;
  int best_rank = 0;                                       // in any list, from 1
  std::vector<std::pair<std::string_view, double>> lanes;  // each lane that found it, by name: its best raw score
};

// By score, ties by best rank, then by id.
//
// min_max: each list's scores are scaled to 0…1; a lane's score is the mean of its lists, the original's
// weighing `original_weight`; the score is the sum of the lanes' scores by weight, 1 at most when the
// weights sum to 1.
// rrf: Σ weight / (rrf_k + rank) over the lists (Cormack, Clarke and Büttcher 2009), and the bonuses.
std::vector<Fused> fuse(const Profile& profile, std::span<const RankedList> lists);

// The fused score as something between 0 and 1 that a card can carry: monotone, not a probability. For rrf it
// is the share of the most that these lists could have given.
double confidence_of(const Profile& profile, double score, std::span<const RankedList> lists);

}  // namespace muniment::retrieval
