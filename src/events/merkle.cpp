// Adds leaves to the right edge of a Merkle tree, and computes its root.
#include "events/merkle.hpp"

#include <bit>

namespace muniment::events {
namespace {
constexpr std::string_view node_domain{"\x01", 1};
}

Hash merkle_node(const Hash& left, const Hash& right) { return sha256({node_domain, view(left), view(right)}); }

void MerkleEdge::add(const Hash& leaf) {
  Hash subtree = leaf;
  // Each trailing one bit of the old size is a perfect subtree that the new leaf completes.
  for (std::int64_t bits = size_; bits & 1; bits >>= 1) {
    subtree = merkle_node(subtrees_.back(), subtree);
    subtrees_.pop_back();
  }
  subtrees_.push_back(subtree);
  ++size_;
}

Hash MerkleEdge::root() const {
  if (subtrees_.empty()) return sha256("");
  Hash root = subtrees_.back();
  for (std::size_t i = subtrees_.size() - 1; i-- > 0;) root = merkle_node(subtrees_[i], root);
  return root;
}

std::string MerkleEdge::encode() const {
  std::string bytes;
  for (const Hash& hash : subtrees_) bytes.append(view(hash));
  return bytes;
}

std::optional<MerkleEdge> MerkleEdge::decode(std::int64_t size, std::string_view bytes) {
  const auto count = static_cast<std::size_t>(std::popcount(static_cast<std::uint64_t>(size)));
  if (size < 0 || bytes.size() != count * sizeof(Hash)) return std::nullopt;
  MerkleEdge edge;
  edge.size_ = size;
  edge.subtrees_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes.copy(reinterpret_cast<char*>(edge.subtrees_[i].data()), sizeof(Hash), i * sizeof(Hash));
  }
  return edge;
}

}  // namespace muniment::events
