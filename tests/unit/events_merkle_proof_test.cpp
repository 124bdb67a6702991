#include "events/merkle_proof.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "events/merkle.hpp"

namespace muniment::events {
namespace {

Hash leaf(std::int64_t index) { return sha256("leaf " + std::to_string(index)); }

// Returns a node of a tree that is small enough to be computed from its leaves each time.
Result<Hash> node(int level, std::int64_t index) {
  if (level == 0) return leaf(index);
  return merkle_node(node(level - 1, 2 * index).value(), node(level - 1, 2 * index + 1).value());
}

Hash root(std::int64_t size) {
  MerkleEdge edge;
  for (std::int64_t i = 0; i < size; ++i) edge.add(leaf(i));
  return edge.root();
}

}  // namespace

TEST(MerkleProof, TheRootIsThatOfTheEdge) {
  for (std::int64_t size = 0; size <= 70; ++size) EXPECT_EQ(root_of(size, node).value(), root(size)) << size;
}

TEST(MerkleProof, EveryLeafOfEverySmallTreeIsProvenAndNoOther) {
  for (std::int64_t size = 1; size <= 33; ++size) {
    for (std::int64_t index = 0; index < size; ++index) {
      const auto proof = inclusion_proof(index, size, node).value();
      EXPECT_TRUE(proves_inclusion(leaf(index), index, size, root(size), proof)) << index << " of " << size;
      EXPECT_FALSE(proves_inclusion(leaf(index + 1), index, size, root(size), proof));
      EXPECT_FALSE(proves_inclusion(leaf(index), index, size, root(size + 1), proof));
    }
  }
}

TEST(MerkleProof, EveryGrowthOfSmallTreesIsProvenAndNoOther) {
  for (std::int64_t second = 0; second <= 33; ++second) {
    for (std::int64_t first = 0; first <= second; ++first) {
      const auto proof = consistency_proof(first, second, node).value();
      EXPECT_TRUE(proves_consistency(first, root(first), second, root(second), proof)) << first << " to " << second;
      EXPECT_FALSE(proves_consistency(first, sha256("other"), second, root(second), proof));
      if (first == 0) continue;
      EXPECT_FALSE(proves_consistency(first, root(first), second, sha256("other"), proof));
    }
  }
}

RC_GTEST_PROP(MerkleProof, AProofWithAHashChangedRemovedOrAddedProvesNothing, ()) {
  const auto second = *rc::gen::inRange<std::int64_t>(2, 500);
  const auto first = *rc::gen::inRange<std::int64_t>(1, second);
  auto inclusion = inclusion_proof(first, second, node).value();
  auto consistency = consistency_proof(first, second, node).value();
  for (auto* proof : {&inclusion, &consistency}) {
    if (proof->empty()) continue;
    const auto at = *rc::gen::inRange<std::size_t>(0, proof->size());
    switch (*rc::gen::inRange(0, 3)) {
      case 0: (*proof)[at][5] ^= 1; break;
      case 1: proof->erase(proof->begin() + static_cast<std::ptrdiff_t>(at)); break;
      default: proof->insert(proof->begin() + static_cast<std::ptrdiff_t>(at), leaf(7'000));
    }
    if (proof == &inclusion) RC_ASSERT(!proves_inclusion(leaf(first), first, second, root(second), *proof));
    if (proof == &consistency) RC_ASSERT(!proves_consistency(first, root(first), second, root(second), *proof));
  }
}

}  // namespace muniment::events
