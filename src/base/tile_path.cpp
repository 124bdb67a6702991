#include "base/tile_path.hpp"

#include <fmt/format.h>

namespace muniment {
namespace {

std::string numbered(std::string path, std::int64_t index, std::int64_t width) {
  path += numbered_path(index);
  if (width < tile_width) path += fmt::format(".p/{}", width);
  return path;
}

}  // namespace

std::string numbered_path(std::int64_t index) {
  std::string digits = fmt::format("{:03}", index % 1000);
  for (index /= 1000; index > 0; index /= 1000) digits = fmt::format("x{:03}/", index % 1000) + digits;
  return digits;
}

std::string tile_path(int level, std::int64_t index, std::int64_t width) {
  return numbered(fmt::format("tile/{}/", level), index, width);
}

std::string entries_path(std::int64_t index, std::int64_t width) { return numbered("tile/entries/", index, width); }

std::int64_t tile_hashes(int level, std::int64_t size) { return size >> (8 * level); }

}  // namespace muniment
