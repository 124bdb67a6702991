// Defines identifiers: UUIDs, run and step ids, and the path of an artifact.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment {

struct Uuid {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const Uuid&) const = default;
  std::string text() const;  // lower case, with hyphens
};

Uuid make_uuid_v7(Time now);                            // RFC 9562: time-ordered
Uuid make_uuid_v8(std::string_view name);               // the first bytes of sha256(name)
std::optional<Uuid> parse_uuid(std::string_view text);  // 36 characters, either case

struct UuidHash {
  std::size_t operator()(const Uuid& id) const;
};

inline constexpr std::string_view log_run_id = "_log";

// Checks a client's run id: [A-Za-z0-9][A-Za-z0-9._-]{0,127}. The error names the deviation.
Status check_run_id(std::string_view id);
// Checks a step id: the characters of a run id and : | @ + =, starting with a letter or digit, at most 200 bytes when
// percent-encoded.
Status check_step_id(std::string_view id);

// Encodes bytes outside [A-Za-z0-9._-] as %XX, for the name of a folder.
std::string percent_encode(std::string_view text);
std::optional<std::string> percent_decode(std::string_view text);

// Returns "runs/<run>/<step or main>/<artifact_id><extension>", relative to the artifact root.
std::string artifact_path(std::string_view run_id, std::string_view step_id, const Uuid& artifact_id,
                          std::string_view mime_type);

// Returns the candidate nearest to `word` by edit distance if a typing error could explain the difference; otherwise an
// empty text. For "Did you mean …?".
template <typename Range>
std::string_view nearest(std::string_view word, const Range& candidates);
std::size_t edit_distance(std::string_view a, std::string_view b);

template <typename Range>
std::string_view nearest(std::string_view word, const Range& candidates) {
  std::string_view best;
  if (word.size() > 128) return best;  // too long, and the cost is the product of the sizes
  // A typing error changes at most a third of the word, or swaps two letters.
  std::size_t best_distance = (word.size() < 6 ? 2 : word.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace muniment
