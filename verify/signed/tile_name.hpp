// Parses a path below the tiles folder. An attacker who can write there may choose any path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/tile_path.hpp"

namespace muniment::verify {

struct TileName {
  bool entries = false;
  int level = 0;
  std::int64_t index = 0;
  std::int64_t width = tile_width;

  std::string path() const { return entries ? entries_path(index, width) : tile_path(level, index, width); }
};

// Returns nullopt if the path does not name a tile or a bundle.
std::optional<TileName> tile_name(const std::string& path);

}  // namespace muniment::verify
