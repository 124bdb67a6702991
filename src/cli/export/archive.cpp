#include "cli/export/archive.hpp"

#include "base/tile_path.hpp"

namespace muniment::cli {

Result<const ArchivedBody*> ExportArchive::find(std::int64_t seq) {
  if (const std::int64_t index = seq / tile_width; !bodies_ || index != index_) {
    bodies_.emplace(read_bodies(folder_, index));
    index_ = index;
  }
  if (!*bodies_) return bodies_->error();
  const std::optional<ArchivedBody>& found = (**bodies_)[static_cast<std::size_t>(seq % tile_width)];
  return found ? &*found : nullptr;
}

}  // namespace muniment::cli
