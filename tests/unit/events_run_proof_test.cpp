// Tests of run proofs against the tree's right edge: the run's leaves and the proof's nodes give the same root as
// MerkleEdge over all leaves, and every node is necessary.
#include "events/run_proof.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <optional>
#include <set>

#include "events/merkle.hpp"

namespace muniment::events {
namespace {

using Leaves = std::set<std::int64_t>;

Hash leaf_at(std::int64_t seq) { return sha256({std::string_view("\x00", 1), std::to_string(seq)}); }

// Returns the root of a perfect subtree, computed from all of its leaves.
Hash subtree(const TreePlace& place) {
  if (place.level == 0) return leaf_at(place.index);
  return merkle_node(subtree({place.level - 1, 2 * place.index}), subtree({place.level - 1, 2 * place.index + 1}));
}

// Computes RFC 6962's recursion over [from, to) from a verifier's data. nullopt: a node is missing.
std::optional<Hash> root_of(std::int64_t from, std::int64_t to, const Leaves& run,
                            const std::map<TreePlace, Hash>& nodes) {
  const std::int64_t count = to - from;
  if ((count & (count - 1)) == 0) {
    int level = 0;
    while (std::int64_t{1} << level < count) ++level;
    if (const auto node = nodes.find({level, from >> level}); node != nodes.end()) return node->second;
  }
  if (count == 1) return run.contains(from) ? std::optional(leaf_at(from)) : std::nullopt;
  std::int64_t split = 1;
  while (split * 2 < count) split *= 2;
  const auto left = root_of(from, from + split, run, nodes);
  const auto right = root_of(from + split, to, run, nodes);
  if (!left || !right) return std::nullopt;
  return merkle_node(*left, *right);
}

LeafSpans spans_of(const Leaves& run) {
  LeafSpans spans;
  for (const std::int64_t seq : run) EXPECT_TRUE(spans.add(seq));
  return spans;
}

std::map<TreePlace, Hash> nodes_of(const std::vector<TreePlace>& places) {
  std::map<TreePlace, Hash> nodes;
  for (const TreePlace& place : places) nodes[place] = subtree(place);
  return nodes;
}

struct Case {
  std::int64_t size = 0;
  Leaves run;
};

// Generates runs that wrote alone or interleaved with others, including both edges of the tree.
Case arbitrary_case() {
  Case one;
  one.size = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto density = *rc::gen::element(1, 2, 10, 60);
  for (std::int64_t seq = 0; seq < one.size; ++seq) {
    if (*rc::gen::inRange(0, density) == 0) one.run.insert(seq);
  }
  if (one.run.empty()) one.run.insert(*rc::gen::inRange<std::int64_t>(0, one.size));
  return one;
}

TEST(RunProof, ItsNodesAndTheRunsLeavesGiveTheRoot) {
  EXPECT_TRUE(rc::check([] {
    const Case one = arbitrary_case();
    MerkleEdge edge;
    for (std::int64_t seq = 0; seq < one.size; ++seq) edge.add(leaf_at(seq));
    const auto nodes = nodes_of(run_proof_places(spans_of(one.run), one.size));
    RC_ASSERT(root_of(0, one.size, one.run, nodes) == std::optional(edge.root()));
  }));
}

TEST(RunProof, NoNodeCanBeSparedAndNoTwoCouldBeOne) {
  EXPECT_TRUE(rc::check([] {
    const Case one = arbitrary_case();
    const auto places = run_proof_places(spans_of(one.run), one.size);
    const auto nodes = nodes_of(places);
    for (const TreePlace& place : places) {
      auto without = nodes;
      without.erase(place);
      RC_ASSERT(!root_of(0, one.size, one.run, without));
      RC_ASSERT(!nodes.contains({place.level, place.index ^ 1}));
    }
  }));
}

TEST(RunProof, PlacesAreSortedAndNeverHoldALeafOfTheRun) {
  EXPECT_TRUE(rc::check([] {
    const Case one = arbitrary_case();
    const auto places = run_proof_places(spans_of(one.run), one.size);
    RC_ASSERT(std::is_sorted(places.begin(), places.end()));
    for (const TreePlace& place : places) {
      const std::int64_t first = place.index << place.level;
      const std::int64_t end = (place.index + 1) << place.level;
      RC_ASSERT(end <= one.size);
      const auto inside = one.run.lower_bound(first);
      RC_ASSERT(inside == one.run.end() || *inside >= end);
    }
  }));
}

TEST(RunProof, ARunThatIsTheWholeLogNeedsNothing) {
  EXPECT_TRUE(run_proof_places(spans_of({0, 1, 2, 3, 4}), 5).empty());
}

TEST(RunProof, ALongLogCostsAFewNodes) {
  const auto places = run_proof_places(spans_of({1'000'000'000'000}), 1'099'511'627'776);
  EXPECT_EQ(places.size(), 40u);
  EXPECT_EQ(places.front(), (TreePlace{0, 1'000'000'000'001}));
}

TEST(RunProof, LeavesMustAscend) {
  LeafSpans spans;
  EXPECT_FALSE(spans.add(-1));
  EXPECT_TRUE(spans.add(3));
  EXPECT_FALSE(spans.add(3));
  EXPECT_FALSE(spans.add(2));
  EXPECT_TRUE(spans.add(4));
  EXPECT_TRUE(spans.add(9));
  ASSERT_EQ(spans.spans().size(), 2u);
  EXPECT_EQ(spans.spans()[0].to, 5);
}

}  // namespace
}  // namespace muniment::events
