// Proofs of an RFC 6962 tree (section 2.1): that a leaf is in it, that it grew from a smaller one.
// Hashes come from a reader of perfect subtrees, so that a proof costs a few tiles and not a log.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/result.hpp"

namespace muniment::events {

// The root of the leaves [index · 2^level, (index + 1) · 2^level), all of which exist.
using NodeReader = std::function<Result<Hash>(int level, std::int64_t index)>;

// The root of the tree's first `size` leaves; sha256("") for none.
Result<Hash> root_of(std::int64_t size, const NodeReader& node);

// From the leaf's sibling up to the root's child. 0 <= index < size.
Result<std::vector<Hash>> inclusion_proof(std::int64_t index, std::int64_t size, const NodeReader& node);
// Empty when first is 0 or second. 0 <= first <= second.
Result<std::vector<Hash>> consistency_proof(std::int64_t first, std::int64_t second, const NodeReader& node);

bool proves_inclusion(const Hash& leaf, std::int64_t index, std::int64_t size, const Hash& root,
                      const std::vector<Hash>& proof);
bool proves_consistency(std::int64_t first, const Hash& first_root, std::int64_t second, const Hash& second_root,
                        const std::vector<Hash>& proof);

}  // namespace muniment::events
