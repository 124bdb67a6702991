#include "base/tile_path.hpp"

#include <gtest/gtest.h>

namespace muniment {

TEST(TilePath, IsWrittenInGroupsOfThreeDigits) {
  EXPECT_EQ(tile_path(0, 0), "tile/0/000");
  EXPECT_EQ(tile_path(1, 999), "tile/1/999");
  EXPECT_EQ(tile_path(0, 1'000), "tile/0/x001/000");
  EXPECT_EQ(tile_path(0, 1'234'067), "tile/0/x001/x234/067");  // the specification's example
  EXPECT_EQ(entries_path(1'234'067), "tile/entries/x001/x234/067");
}

TEST(TilePath, OfAPartialTileEndsWithItsWidth) {
  EXPECT_EQ(tile_path(0, 273, 112), "tile/0/273.p/112");
  EXPECT_EQ(entries_path(0, 1), "tile/entries/000.p/1");
  EXPECT_EQ(tile_path(0, 273, 256), "tile/0/273");
}

TEST(TilePath, ALogOf70000LeavesHasTheTilesOfTheSpecificationsExample) {
  EXPECT_EQ(tile_hashes(0, 70'000), 273 * 256 + 112);
  EXPECT_EQ(tile_hashes(1, 70'000), 256 + 17);
  EXPECT_EQ(tile_hashes(2, 70'000), 1);
  EXPECT_EQ(tile_hashes(3, 70'000), 0);
}

}  // namespace muniment
