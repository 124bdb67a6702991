// Tests of the tree's right edge against RFC 6962's definition: a recursion over all leaves.
#include "events/merkle.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace muniment::events {
namespace {

Hash leaf_of(std::string_view data) { return sha256({std::string_view("\x00", 1), data}); }

// RFC 6962, 2.1: MTH of already hashed leaves.
Hash naive_root(const std::vector<Hash>& leaves, std::size_t begin, std::size_t end) {
  if (begin == end) return sha256("");
  if (end - begin == 1) return leaves[begin];
  std::size_t split = 1;
  while (split * 2 < end - begin) split *= 2;
  return sha256({std::string_view("\x01", 1), view(naive_root(leaves, begin, begin + split)),
                 view(naive_root(leaves, begin + split, end))});
}

// The tree of Certificate Transparency's published test vectors.
TEST(Merkle, GivesTheKnownRoots) {
  const std::vector<std::string> data = {
      "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"};
  const std::vector<std::string> roots = {"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                                          "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
                                          "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
                                          "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
                                          "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
                                          "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
                                          "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
                                          "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};
  MerkleEdge edge;
  EXPECT_EQ(to_hex(edge.root()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  for (std::size_t i = 0; i < data.size(); ++i) {
    edge.add(leaf_of(*from_hex(data[i])));
    EXPECT_EQ(to_hex(edge.root()), roots[i]) << i + 1 << " leaves";
  }
}

TEST(Merkle, TheEdgeKnowsTheRootOfEverySize) {
  EXPECT_TRUE(rc::check([](std::vector<std::string> data) {
    MerkleEdge edge;
    std::vector<Hash> leaves;
    for (const std::string& item : data) {
      leaves.push_back(leaf_of(item));
      edge.add(leaves.back());
      RC_ASSERT(edge.size() == static_cast<std::int64_t>(leaves.size()));
      RC_ASSERT(edge.root() == naive_root(leaves, 0, leaves.size()));
    }
  }));
}

TEST(Merkle, AStoredEdgeGrowsOnAsTheOneItCameFrom) {
  EXPECT_TRUE(rc::check([] {
    const auto size = *rc::gen::inRange<std::size_t>(0, 300);
    MerkleEdge edge;
    for (std::size_t i = 0; i < size; ++i) edge.add(leaf_of(std::to_string(i)));
    auto again = MerkleEdge::decode(edge.size(), edge.encode());
    RC_ASSERT(again.has_value());
    for (int i = 0; i < 5; ++i) {
      edge.add(leaf_of("more"));
      again->add(leaf_of("more"));
      RC_ASSERT(edge.root() == again->root());
    }
  }));
}

TEST(Merkle, AnEdgeOfAnotherSizeIsRefused) {
  MerkleEdge edge;
  for (int i = 0; i < 5; ++i) edge.add(leaf_of("x"));
  const std::string bytes = edge.encode();
  EXPECT_EQ(bytes.size(), 2 * sizeof(Hash));
  EXPECT_FALSE(MerkleEdge::decode(7, bytes).has_value());
  EXPECT_FALSE(MerkleEdge::decode(5, bytes.substr(1)).has_value());
  EXPECT_FALSE(MerkleEdge::decode(-1, "").has_value());
  EXPECT_TRUE(MerkleEdge::decode(0, "").has_value());
}

}  // namespace
}  // namespace muniment::events
