// Profiles: named, versioned sets of constants, so that a query can be replayed with the same plan. Changing a constant
// that affects answers requires a new profile.
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

// Up to this rank, the weight of a candidate's place against its rerank score.
struct BlendStep {
  std::size_t rank_max = 0;
  double weight = 0;
};

struct Profile {
  std::string_view name;  // muniment-1, kairos
  FusionKind fusion = FusionKind::min_max;
  std::vector<std::vector<LaneWeight>> lane_sets;  // the first set whose lanes are all available is used
  double typo_lane_weight = 0;  // weight of the hash lane when it joins because the lexical lane found too little
  std::vector<LaneWeight> short_chunk_words;  // by lane: fusion.hpp, discount_short
  std::vector<LaneWeight> noise;              // by lane: score up to which two texts are near by chance; fusion.hpp
  // By lane: score that a candidate needs if the lexical lane does not support it; fusion.hpp, is_near
  std::vector<LaneWeight> floors;
  // Number of hits of a list that may stand out (fusion.hpp, weigh_lanes); 0: the lanes' weights are fixed.
  std::size_t standing_hits = 0;
  std::vector<LaneWeight> standing_powers;  // by lane: power of how far its list stands out (1 for other lanes)
  double original_weight = 2;               // weight of the original query's lists
  double rrf_k = 60;
  double rank_one_bonus = 0;  // kairos: .05 for rank 1, .02 for ranks 2–3, once per document by its best rank
  double rank_two_three_bonus = 0;
  std::size_t candidates = 100;  // taken from each list
  std::vector<BlendStep> blend;  // the last step's rank_max is npos
  double probe_lead = 1.3;       // the first hit is strong if it scores this many times the second
};

const Profile& default_profile();
Result<const Profile*> find_profile(
    std::string_view name);  // empty: the default. Errors: invalid_argument, naming the existing profiles

// Chooses the lanes of a query, with weights that sum to 1: the first set of the profile whose lanes are all
// `available`, without those that the mode excludes. Empty if none of the wanted lanes is available.
enum class LaneChoice : std::uint8_t { all, lexical_only, vectors_only };
std::vector<LaneWeight> choose_lanes(const Profile& profile, LaneChoice choice, std::span<const std::string> available);

// If there are too few lexical hits, the words may be misspelt: then the hash lane joins, whose n-grams tolerate typos.
bool typo_lane_joins(const std::vector<LaneWeight>& chosen, std::size_t lexical_hits, std::size_t k);
// Returns the chosen lanes and the hash lane, with weights that sum to 1.
std::vector<LaneWeight> with_typo_lane(const Profile& profile, std::vector<LaneWeight> chosen);

// Returns whether the first of two lexical hits leads so clearly that expanding the query can only weaken it.
bool probe_is_strong(const Profile& profile, std::span<const double> scores);

}  // namespace muniment::retrieval
