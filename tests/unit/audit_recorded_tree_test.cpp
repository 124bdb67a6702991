#include "audit/recorded_tree.hpp"

#include <gtest/gtest.h>

namespace muniment::audit {
namespace {

TEST(ProvenTiles, TheOneThatWasNotUsedForLongestGoes) {
  ProvenTiles tiles(3);
  for (const std::int64_t tile : {0, 7, 5}) tiles.put(tile, std::to_string(tile));
  ASSERT_NE(tiles.find(0), nullptr);  // the oldest events are read again
  tiles.put(9, "9");
  EXPECT_EQ(tiles.find(7), nullptr);
  for (const std::int64_t tile : {0, 5, 9}) {
    ASSERT_NE(tiles.find(tile), nullptr) << tile;
    EXPECT_EQ(*tiles.find(tile), std::to_string(tile));
  }
}

TEST(ProvenTiles, APartialOneThatHasGrownTakesTheSamePlace) {
  ProvenTiles tiles(2);
  tiles.put(0, "a");
  tiles.put(1, "b");
  tiles.put(1, "bc");
  ASSERT_NE(tiles.find(0), nullptr);
  EXPECT_EQ(*tiles.find(1), "bc");
}

}  // namespace
}  // namespace muniment::audit
