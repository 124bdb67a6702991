// Profiles: named, versioned sets of constants, so that a query can be replayed as it was planned.
// A change of a constant that changes an answer is a new profile.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

enum class FusionKind { min_max, rrf };

struct LaneWeight {
  std::string_view lane;
  double weight = 0;
};

// Up to this rank, a reranked candidate's place counts so much against its rerank score.
struct BlendStep {
  std::size_t rank_max = 0;
  double weight = 0;
};

struct Profile {
  std::string_view name;  // muniment-1, kairos
  FusionKind fusion = FusionKind::min_max;
  std::vector<std::vector<LaneWeight>> lane_sets;  // the first whose lanes are all there is used
  double typo_lane_weight = 0;                     // of the hash lane where it joins because lexical found too little
  std::vector<LaneWeight> short_chunk_words;       // by lane: fusion.hpp, discount_short
  double original_weight = 2;                      // of the original query's lists
  double rrf_k = 60;
  double rank_one_bonus = 0;  // kairos: .05 for rank 1, .02 for ranks 2–3, once a document by its best rank
  double rank_two_three_bonus = 0;
  std::size_t candidates = 100;  // of each list
  std::vector<BlendStep> blend;  // the last step's rank_max is npos
  double probe_lead = 1.3;       // a first hit is strong that scores so many times the second
};

const Profile& default_profile();
Result<const Profile*> find_profile(
    std::string_view name);  // empty: the default. Errors: invalid_argument, naming those there are

// Which lanes a query asks, with weights that sum to 1: of the profile's sets the first whose lanes are all
// `available`, less those that are not `wanted` by the mode. Empty: nothing that is wanted is available.
enum class LaneChoice : std::uint8_t { all, lexical_only, vectors_only };
std::vector<LaneWeight> choose_lanes(const Profile& profile, LaneChoice choice, std::span<const std::string> available);

// With too few lexical hits the words may be misspelt: then the hash lane joins, whose n-grams forgive that.
bool typo_lane_joins(const std::vector<LaneWeight>& chosen, std::size_t lexical_hits, std::size_t k);
// The chosen lanes with it, weights summing to 1 again.
std::vector<LaneWeight> with_typo_lane(const Profile& profile, std::vector<LaneWeight> chosen);

// Whether the first of two lexical hits leads so clearly that expanding the query can only blur it.
bool probe_is_strong(const Profile& profile, std::span<const double> scores);

}  // namespace muniment::retrieval
