// The check of freshness: evidence is younger than the policy's limit, by the daemon's clock. A time that a client
// states can only make evidence older.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "evidence/completion/checks.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::int64_t micros_per_second = 1'000'000;
// Tolerated difference between the clocks of two machines, for a time that another machine stated.
constexpr std::int64_t stated_skew_seconds_max = 120;

}  // namespace

Time made_at(const Piece& piece) {
  if (!piece.command || piece.command->ended_at.micros <= 0) return piece.recorded_at;
  return std::min(piece.recorded_at, piece.command->ended_at);
}

bool is_outdated(const Piece& piece, std::chrono::seconds fresh_for, Time now) {
  Time since = made_at(piece);
  if (piece.stated_at) since = std::min(since, *piece.stated_at);
  return piece.recorded_at > now || (piece.expires_at && *piece.expires_at <= now) ||
         now.micros - since.micros >= fresh_for.count() * micros_per_second;
}

void check_freshness(Case& c, Findings& findings) {
  const std::int64_t limit = c.policy.fresh_for.count() * micros_per_second;
  for (const Exhibit& exhibit : c.exhibits) {
    const Piece& piece = *exhibit.piece;
    if (piece.recorded_at > c.now) {
      findings.add(
          Code::clock_set_back, piece.evidence_id,
          fmt::format(
              "The evidence was recorded at {}, after the daemon's current time {}: its age is unknown. Correct the "
              "clock, then record the evidence again.",
              format_time(piece.recorded_at), format_time(c.now)));
      continue;
    }
    Time since = made_at(piece);
    if (piece.stated_at && piece.stated_at->micros > c.now.micros + stated_skew_seconds_max * micros_per_second) {
      findings.add(Code::from_the_future, piece.evidence_id,
                   fmt::format("The evidence states a time in the future, {}. Record it again with its true time.",
                               format_time(*piece.stated_at)));
    } else if (piece.stated_at) {
      since = std::min(since, *piece.stated_at);
    }
    if (piece.expires_at && *piece.expires_at <= c.now) {
      findings.add(Code::stale, piece.evidence_id,
                   fmt::format("The evidence is stale: it expired at {}. Run the check again and record it.",
                               format_time(*piece.expires_at)));
    } else if (c.now.micros - since.micros >= limit) {
      findings.add(
          Code::stale, piece.evidence_id,
          fmt::format("The evidence is stale: it is {} old, and the limit is {}. Run the check again and record it.",
                      human_duration(c.now.micros - since.micros), human_duration(limit)));
    }
  }
}

}  // namespace muniment::evidence::completion
