// The right edge of an RFC 6962 Merkle tree: one hash for every set bit of the size, at most 64. It suffices to add
// leaves and to compute the root.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/sha256.hpp"

namespace muniment::events {

class MerkleEdge {
 public:
  void add(const Hash& leaf);
  std::int64_t size() const { return size_; }
  Hash root() const;  // sha256("") for the empty tree

  // The hashes of the perfect subtrees, largest first, as stored in checkpoint.edge.
  std::string encode() const;
  static std::optional<MerkleEdge> decode(std::int64_t size, std::string_view bytes);
  friend bool operator==(const MerkleEdge&, const MerkleEdge&) = default;

 private:
  std::int64_t size_ = 0;
  std::vector<Hash> subtrees_;  // largest first
};

Hash merkle_node(const Hash& left, const Hash& right);  // sha256(0x01 ‖ left ‖ right)

}  // namespace muniment::events
