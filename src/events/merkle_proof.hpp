// Proofs of an RFC 6962 tree (section 2.1): a leaf is in the tree, or the tree grew from a smaller one. The hashes come
// from a reader of perfect subtrees, so that a proof reads a few tiles and not the log.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/result.hpp"

namespace muniment::events {

// Returns the root of the leaves [index · 2^level, (index + 1) · 2^level), all of which exist.
using NodeReader = std::function<Result<Hash>(int level, std::int64_t index)>;

// The root of the tree's first `size` leaves; sha256("") for size 0.
Result<Hash> root_of(std::int64_t size, const NodeReader& node);

// The hashes from the leaf's sibling up to the root's child. 0 <= index < size.
Result<std::vector<Hash>> inclusion_proof(std::int64_t index, std::int64_t size, const NodeReader& node);
// Empty if first is 0 or second. 0 <= first <= second.
Result<std::vector<Hash>> consistency_proof(std::int64_t first, std::int64_t second, const NodeReader& node);

bool proves_inclusion(const Hash& leaf, std::int64_t index, std::int64_t size, const Hash& root,
                      const std::vector<Hash>& proof);
bool proves_consistency(std::int64_t first, const Hash& first_root, std::int64_t second, const Hash& second_root,
                        const std::vector<Hash>& proof);

}  // namespace muniment::events
