// Fusion of several ranked lists into one. Pure functions; the order of the lists does not matter.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/plan/profile.hpp"

namespace muniment::retrieval {

// The answer of a lane to the query or to one of its expansions: best first, without duplicates.
struct RankedList {
  std::string_view lane;
  double weight = 1;     // weight of the lane
  bool original = true;  // the query's, not an expansion's
  std::span<const Hit> hits;
};

// Discounts short chunks: the vector of a few words has little content, so short chunks are nearer to a query than they
// should be. A lane's score is multiplied by words / (words + n), with the profile's n for the lane. `words` has the
// word count of each hit, from LexicalReader::words_of. Drops hits up to the lane's noise before that: a question
// shares no features with a text in another script, but their vectors are not exactly orthogonal. Sorts again, ties by
// id.
void discount_short(const Profile& profile, std::string_view lane, std::vector<Hit>& hits,
                    std::span<const std::uint32_t> words);

// Returns how far the best hits of a list stand out, 0…1: the part of the list's span of scores that is above its hit
// `profile.standing_hits`. A short list stands out completely.
double standing_out(const Profile& profile, std::span<const Hit> hits);

// Multiplies the weight of each lane by how far its list for the original query stands out, to the profile's power for
// the lane, and scales the weights so that they sum to 1: a lane that cannot tell its best hits from the others has
// little to say about this query. Does nothing for a profile with fixed weights.
void weigh_lanes(const Profile& profile, std::span<RankedList> lists);

struct Fused {
  ChunkId chunk = 0;
  double score = 0;
  int best_rank = 0;                                       // in any list, from 1
  std::vector<std::pair<std::string_view, double>> lanes;  // each lane that found it, by name: its best raw score
};

// Sorted by score, ties by best rank, then by id.
//
// min_max: the scores of each list are scaled to 0…1; a lane's score is the mean of its lists, with `original_weight`
// for the original's; the result is the weighted sum of the lanes' scores, at most 1 if the weights sum to 1. rrf: Σ
// weight / (rrf_k + rank) over the lists (Cormack, Clarke and Büttcher 2009), plus the bonuses.
std::vector<Fused> fuse(const Profile& profile, std::span<const RankedList> lists);

// Returns whether a candidate of a hybrid query has to do with it: the lexical lane found it, or a lane whose score is
// above the profile's floor for it. The nearest texts of an encoder are hits whatever the query is; beside it, the hash
// lane supports no candidate, since a few of many texts are near by the chance of their letters.
bool is_near(const Profile& profile, const Fused& fused, std::span<const RankedList> lists);

// Maps the fused score to 0…1 for a card: monotone, but not a probability. For rrf, it is the share of the maximum that
// these lists allow.
double confidence_of(const Profile& profile, double score, std::span<const RankedList> lists);

}  // namespace muniment::retrieval
