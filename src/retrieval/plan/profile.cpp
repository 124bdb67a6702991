// The table of profiles.
#include "retrieval/plan/profile.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace muniment::retrieval {
namespace {

constexpr std::size_t all_ranks = std::numeric_limits<std::size_t>::max();

Profile muniment_1() {
  Profile profile;
  profile.name = "muniment-1";
  profile.fusion = FusionKind::min_max;
  profile.lane_sets = {
      {{"lexical", .5}, {"http", .5}},
      {{"lexical", .55}, {"encoder", .45}},
      {{"lexical", .59}, {"lsa", .41}},
      {{"lexical", .75}, {"hash", .25}},
      {{"lexical", 1}},
  };
  profile.typo_lane_weight = .35;
  profile.short_chunk_words = {{"hash", 20}, {"lsa", 20}};
  profile.standing_hits = 20;
  profile.standing_powers = {{"lsa", 2}};
  profile.noise = {{"hash", .16}};       // above the products of unrelated short texts, whose deviation is 1 / √512
  profile.floors = {{"encoder", .525}};  // above the products of unrelated texts (docs/retrieval.md)
  profile.blend = {{all_ranks, .5}};
  return profile;
}

// The profile kairos: lanes are lists like any others.
Profile kairos() {
  Profile profile;
  profile.name = "kairos";
  profile.fusion = FusionKind::rrf;
  profile.lane_sets = {
      {{"lexical", 1}, {"http", 1}},
      {{"lexical", 1}, {"encoder", 1}},
      {{"lexical", 1}, {"lsa", 1}},
      {{"lexical", 1}, {"hash", 1}},
      {{"lexical", 1}},
  };
  profile.rank_one_bonus = .05;
  profile.rank_two_three_bonus = .02;
  profile.blend = {{3, .75}, {10, .60}, {all_ranks, .40}};
  return profile;
}

const std::array<Profile, 2>& profiles() {
  static const std::array<Profile, 2> all = {muniment_1(), kairos()};
  return all;
}

// With min_max the weights are shares and have to sum to 1; with rrf they are factors and remain.
void normalise(const Profile& profile, std::vector<LaneWeight>& lanes) {
  if (profile.fusion == FusionKind::rrf) return;
  double sum = 0;
  for (const LaneWeight& lane : lanes) sum += lane.weight;
  for (LaneWeight& lane : lanes) lane.weight = sum > 0 ? lane.weight / sum : 0;
}

bool wanted(LaneChoice choice, std::string_view lane) {
  if (choice == LaneChoice::all) return true;
  return (lane == "lexical") == (choice == LaneChoice::lexical_only);
}

}  // namespace

const Profile& default_profile() { return profiles().front(); }

Result<const Profile*> find_profile(std::string_view name) {
  if (name.empty()) return &default_profile();
  std::string known;
  for (const Profile& profile : profiles()) {
    if (profile.name == name) return &profile;
    known += (known.empty() ? "" : ", ") + std::string(profile.name);
  }
  return Error(Errc::invalid_argument, "no such profile; there are " + known);
}

std::vector<LaneWeight> choose_lanes(const Profile& profile, LaneChoice choice,
                                     std::span<const std::string> available) {
  for (const auto& set : profile.lane_sets) {
    std::vector<LaneWeight> chosen;
    bool all_there = true;
    for (const LaneWeight& lane : set) {
      if (!wanted(choice, lane.lane)) continue;
      all_there = all_there && std::find(available.begin(), available.end(), lane.lane) != available.end();
      chosen.push_back(lane);
    }
    if (!all_there || chosen.empty()) continue;
    normalise(profile, chosen);
    return chosen;
  }
  return {};
}

bool typo_lane_joins(const std::vector<LaneWeight>& chosen, std::size_t lexical_hits, std::size_t k) {
  const auto has = [&chosen](std::string_view name) {
    return std::any_of(chosen.begin(), chosen.end(), [name](const LaneWeight& lane) { return lane.lane == name; });
  };
  return lexical_hits < k && has("lexical") && !has("hash") && chosen.size() > 1;
}

std::vector<LaneWeight> with_typo_lane(const Profile& profile, std::vector<LaneWeight> chosen) {
  chosen.push_back({"hash", profile.fusion == FusionKind::rrf ? 1 : profile.typo_lane_weight});
  normalise(profile, chosen);
  return chosen;
}

bool probe_is_strong(const Profile& profile, std::span<const double> scores) {
  if (scores.empty() || scores.front() <= 0) return false;
  return scores.size() > 1 && scores[0] >= profile.probe_lead * scores[1];
}

}  // namespace muniment::retrieval
