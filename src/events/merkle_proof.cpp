// Makes and checks inclusion and consistency proofs.
#include "events/merkle_proof.hpp"

#include <bit>

#include "events/merkle.hpp"

namespace muniment::events {
namespace {

// The largest power of two below `leaves`, at which RFC 6962 splits a tree.
std::int64_t split(std::int64_t leaves) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(leaves - 1)));
}

int height(std::int64_t leaves) { return std::countr_zero(static_cast<std::uint64_t>(leaves)); }

bool perfect(std::int64_t leaves) { return std::has_single_bit(static_cast<std::uint64_t>(leaves)); }

// The root of the leaves [begin, end), where `begin` is a multiple of the size of each perfect part.
Result<Hash> range_root(std::int64_t begin, std::int64_t end, const NodeReader& node) {
  const std::int64_t leaves = end - begin;
  if (perfect(leaves)) return node(height(leaves), begin >> height(leaves));
  const std::int64_t middle = begin + split(leaves);
  ASSIGN_OR_RETURN(const Hash left, range_root(begin, middle, node));
  ASSIGN_OR_RETURN(const Hash right, range_root(middle, end, node));
  return merkle_node(left, right);
}

Status include(std::int64_t index, std::int64_t begin, std::int64_t end, const NodeReader& node,
               std::vector<Hash>& proof) {
  if (end - begin == 1) return success();
  const std::int64_t middle = begin + split(end - begin);
  const bool in_left = index < middle;
  RETURN_IF_ERROR(in_left ? include(index, begin, middle, node, proof) : include(index, middle, end, node, proof));
  ASSIGN_OR_RETURN(const Hash sibling, in_left ? range_root(middle, end, node) : range_root(begin, middle, node));
  proof.push_back(sibling);
  return success();
}

// Implements SUBPROOF of RFC 6962, 2.1.2. `known` is true if the subtree is the old tree itself, whose root is known.
Status grow(std::int64_t first, std::int64_t begin, std::int64_t end, bool known, const NodeReader& node,
            std::vector<Hash>& proof) {
  if (first == end) {
    if (known) return success();
    ASSIGN_OR_RETURN(const Hash root, range_root(begin, end, node));
    proof.push_back(root);
    return success();
  }
  const std::int64_t middle = begin + split(end - begin);
  const bool in_left = first <= middle;
  RETURN_IF_ERROR(in_left ? grow(first, begin, middle, known, node, proof)
                          : grow(first, middle, end, false, node, proof));
  ASSIGN_OR_RETURN(const Hash other, in_left ? range_root(middle, end, node) : range_root(begin, middle, node));
  proof.push_back(other);
  return success();
}

}  // namespace

Result<Hash> root_of(std::int64_t size, const NodeReader& node) {
  if (size == 0) return sha256("");
  return range_root(0, size, node);
}

Result<std::vector<Hash>> inclusion_proof(std::int64_t index, std::int64_t size, const NodeReader& node) {
  std::vector<Hash> proof;
  RETURN_IF_ERROR(include(index, 0, size, node, proof));
  return proof;
}

Result<std::vector<Hash>> consistency_proof(std::int64_t first, std::int64_t second, const NodeReader& node) {
  std::vector<Hash> proof;
  if (first > 0 && first < second) RETURN_IF_ERROR(grow(first, 0, second, true, node, proof));
  return proof;
}

// Implements RFC 9162, 2.1.3.2.
bool proves_inclusion(const Hash& leaf, std::int64_t index, std::int64_t size, const Hash& root,
                      const std::vector<Hash>& proof) {
  if (index < 0 || index >= size) return false;
  std::int64_t at = index;
  std::int64_t last = size - 1;
  Hash hash = leaf;
  for (const Hash& sibling : proof) {
    if (last == 0) return false;
    if (at % 2 == 1 || at == last) {
      hash = merkle_node(sibling, hash);
      while (at % 2 == 0 && at != 0) at >>= 1, last >>= 1;
    } else {
      hash = merkle_node(hash, sibling);
    }
    at >>= 1, last >>= 1;
  }
  return last == 0 && hash == root;
}

// Implements RFC 9162, 2.1.4.2.
bool proves_consistency(std::int64_t first, const Hash& first_root, std::int64_t second, const Hash& second_root,
                        const std::vector<Hash>& proof) {
  if (first < 0 || first > second) return false;
  if (first == 0) return proof.empty() && first_root == sha256("");
  if (first == second) return proof.empty() && first_root == second_root;
  std::size_t next = 0;
  std::int64_t at = first - 1;
  std::int64_t last = second - 1;
  while (at % 2 == 1) at >>= 1, last >>= 1;
  if (at != 0 && proof.empty()) return false;
  Hash old_hash = at == 0 ? first_root : proof[next++];  // an old size that is a power of two starts with its own root
  Hash new_hash = old_hash;
  for (; next < proof.size(); ++next) {
    if (last == 0) return false;
    if (at % 2 == 1 || at == last) {
      old_hash = merkle_node(proof[next], old_hash);
      new_hash = merkle_node(proof[next], new_hash);
      while (at % 2 == 0 && at != 0) at >>= 1, last >>= 1;
    } else {
      new_hash = merkle_node(new_hash, proof[next]);
    }
    at >>= 1, last >>= 1;
  }
  return last == 0 && old_hash == first_root && new_hash == second_root;
}

}  // namespace muniment::events
