// Compares and merges capsules. A merge is a set: every frame of any input once, in the order of their times, so that
// merging is associative, commutative and idempotent, and equal inputs give equal bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace muniment::capsule {

// URIs, in order.
struct Difference {
  std::vector<std::string> only_left, only_right;
  std::vector<std::string> changed;  // whose current revisions have other bytes
};
Result<Difference> diff(const std::string& left, const std::string& right);

struct Merged {
  std::uint64_t frames = 0;      // data frames of the result
  std::uint64_t documents = 0;   // revisions among them
  std::uint64_t duplicates = 0;  // frames that more than one input had
  // Documents whose current revisions in two inputs differ, while neither input has the other's.
  std::vector<std::string> conflicts;
};
// Merges capsules into a new file. Revisions are equal by (URI, SHA-256 of the bytes, timestamp), other frames by type,
// time and bytes. `latest`: takes only the newest current revision of each URI. Errors: conflict if `target` exists.
Result<Merged> merge(const std::vector<std::string>& inputs, const std::string& target, bool latest);

}  // namespace muniment::capsule
