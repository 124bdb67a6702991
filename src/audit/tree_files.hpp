// The log's tree as static files that any web server can serve (C2SP tlog-tiles; docs/format.md,
// Tiles): tiles of 256 hashes, bundles of 256 entries. They follow from the events and can be made
// again; nothing here is authoritative but the signed checkpoint beside them.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/result.hpp"
#include "base/tile_path.hpp"
#include "events/merkle_proof.hpp"

namespace muniment::audit {

// Reading hashes for proofs. One thread at a time a reader; it keeps the tiles that it read last.
class TreeReader {
 public:
  // `folder`: the tiles folder. `size`: a signed size, for which all tiles exist.
  TreeReader(const Fd& folder, std::int64_t size) : folder_(folder), size_(size) {}

  // For events::inclusion_proof and its like. Errors: corrupt when a tile is missing or cut.
  Result<Hash> node(int level, std::int64_t index);
  events::NodeReader reader() {
    return [this](int level, std::int64_t index) { return node(level, index); };
  }

 private:
  Result<std::string_view> tile(int level, std::int64_t index);

  const Fd& folder_;
  const std::int64_t size_;
  std::unordered_map<std::string, std::string> tiles_;
};

// Writing, by one thread: leaf after leaf, full tiles at once, partial ones when asked.
class TreeWriter {
 public:
  // Makes the folder if it is missing.
  static Result<TreeWriter> open(const std::string& folder);

  // Starts at a size that is a multiple of 256, from the full tiles below it. Errors: corrupt when
  // one is missing: start at 0.
  Status start_at(std::int64_t size);

  // Takes the next 256 leaves, at a size that is a multiple of 256, from the full tile and the bundle that lie there,
  // if they fit each other. False: they do not, or are missing, and must be added.
  Result<bool> take();

  // `entry`: the hashed entry, at most 65,535 bytes.
  Status add(std::string_view entry, const Hash& leaf);

  // The partial tiles and the partial bundle of the present size.
  Status write_partial();
  // Writes those of smaller sizes again that are not what they should be: a power cut leaves some of them empty. How
  // many.
  Result<std::int64_t> mend_partial();
  // Everything written so far is on the disk afterwards.
  Status sync();
  // checkpoint, replaced at once.
  Status write_checkpoint(std::string_view note);

  std::int64_t size() const { return size_; }
  Hash root() const;
  const Fd& folder() const { return folder_; }

 private:
  explicit TreeWriter(Fd folder) : folder_(std::move(folder)) {}
  Status push(std::size_t level, std::string_view hash);
  Status write(const std::string& path, std::string_view bytes);
  Status remove_partial(const std::string& full_path);
  Status make_folders(const std::string& path);
  Result<std::int64_t> mend_partial_of(const std::string& full_path, std::string_view bytes,
                                       const std::vector<std::size_t>& ends);

  Fd folder_;
  std::int64_t size_ = 0;
  std::vector<std::string> levels_;  // the hashes of each level's last, partial tile
  std::string entries_;              // of the last, partial bundle
  std::string last_folder_;          // made already
};

// How many leaves the tree in this folder has, 0 where there is none: tiles are only ever written of what was
// committed.
std::int64_t recorded_size(const std::string& folder);

// The files of the tree in this folder that do not have the length which their name says, as a power cut leaves them:
// where the first leaf of the lowest is, and their paths.
struct CutTiles {
  std::int64_t from = -1;  // -1: none is cut
  std::vector<std::string> paths;
};
CutTiles cut_tiles(const std::string& folder);

// The root of a tile's hashes (a power of two of them).
Hash tile_root(std::string_view hashes);

}  // namespace muniment::audit
