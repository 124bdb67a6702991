// Computes the paths and sizes of the tiles of a log (C2SP tlog-tiles).
#pragma once

#include <cstdint>
#include <string>

namespace muniment {

inline constexpr std::int64_t tile_width = 256;  // hashes of a full tile, entries of a full bundle
inline constexpr std::size_t tile_bytes = 32 * std::size_t{tile_width};
inline constexpr int tile_levels_max = 7;  // 256^7 leaves exceed an int64

// Example: "tile/0/x001/234/067", with ".p/<width>" for a tile of less than 256 hashes.
std::string tile_path(int level, std::int64_t index, std::int64_t width = tile_width);
// Path of an entry bundle, below "tile/entries/".
std::string entries_path(std::int64_t index, std::int64_t width = tile_width);

// The number in groups of three digits, as in the paths above: "x001/234/067".
std::string numbered_path(std::int64_t index);

// Number of hashes of level `level` in a log of `size` leaves: size / 256^level.
std::int64_t tile_hashes(int level, std::int64_t size);

}  // namespace muniment
