// Finds followers of the log that lag: the number of unread events, since when, and the effect on readers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

struct LateFollower {
  std::string name;
  std::int64_t events = 0;    // number of unread events
  std::optional<Time> since;  // time of the oldest unread event, or of the daemon's later start; absent if unknown
};

// Returns whether the log was restored or truncated and accepts no events. The daemon's note then names the next step.
bool is_read_only(const json::Value& status);

// Returns the followers that have not read an event for five seconds while the daemon runs, the largest lag first.
// `status` is the result of server.status.
std::vector<LateFollower> late_followers(Client& client, const json::Value& status, Time now);

// Returns the effects of this follower's lag: "run list and its statuses are outdated".
std::string_view effect_of(std::string_view follower);

// Returns "search is 1,204 events behind since 2026-11-27T01:02:03Z (12 min 3 s): …" with the next step.
std::string explained(const LateFollower& late, Time now);

}  // namespace muniment::cli
