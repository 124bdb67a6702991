// Profiles: named, versioned sets of constants, so that a query can be replayed as it was planned.
#pragma once

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

struct Profile {
  std::string_view name;              // muniment-1, kairos
  FusionKind fusion = FusionKind::min_max;
  std::vector<std::vector<LaneWeight>> lane_sets;  // the first whose lanes are all there is used
  double original_weight = 2;         // of the original query's lists
  double rrf_k = 60;
  double rank_one_bonus = 0;          // kairos: .05 for rank 1, .02 for ranks 2–3, once a document by its best rank
  double rank_two_three_bonus = 0;
  std::size_t candidates = 100;       // of each list
};

const Profile& default_profile();
Result<const Profile*> find_profile(std::string_view name);  // Errors: invalid_argument, naming those there are

}  // namespace muniment::retrieval
