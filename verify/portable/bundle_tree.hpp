// Computes the root of a log from some of its leaves and the perfect subtrees around them (docs/format.md, Run
// bundles).
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/result.hpp"

namespace muniment::verify {

using KnownLeaves = std::vector<std::pair<std::int64_t, Hash>>;            // seq and leaf, ordered by seq
using KnownNodes = std::map<std::pair<std::int64_t, std::int64_t>, Hash>;  // keys: level and index

// Parses a line of `nodes`. Errors: corrupt.
Result<std::pair<std::pair<std::int64_t, std::int64_t>, Hash>> parse_node(std::string_view line);

// Returns the root. Errors: corrupt if a node is missing or superfluous.
Result<Hash> root_of_known(std::int64_t size, const KnownLeaves& leaves, const KnownNodes& nodes);

}  // namespace muniment::verify
