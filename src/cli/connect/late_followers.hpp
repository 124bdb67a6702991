// Followers of the log that are late: how many events each has not read, since when, and what that means to a reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "cli/connect/client.hpp"

namespace muniment::cli {

struct LateFollower {
  std::string name;
  std::int64_t events = 0;    // that it has not read
  std::optional<Time> since;  // when the oldest of them was recorded; absent where that is not known
};

// Those with an unread event that is older than five seconds, the furthest behind first. `status`: the result of
// server.status.
std::vector<LateFollower> late_followers(Client& client, const json::Value& status, Time now);

// What is old while this follower is late: "run list and run show".
std::string_view effect_of(std::string_view follower);

// "search is 1,204 events behind since 2026-11-27T01:02:03Z (12 min 3 s): …", and what to do.
std::string explained(const LateFollower& late, Time now);

}  // namespace muniment::cli
