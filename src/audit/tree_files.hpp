// The log's tree as static files that any web server can serve (C2SP tlog-tiles; docs/format.md, Tiles): tiles of 256
// hashes, bundles of 256 entries. They are derived from the events and can be built again; only the signed checkpoint
// beside them is authoritative.
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

// Reads hashes for proofs. One thread at a time; caches the tiles that it read last.
class TreeReader {
 public:
  // `folder` is the tiles folder; all tiles up to `size`, a signed size, must exist.
  TreeReader(const Fd& folder, std::int64_t size) : folder_(folder), size_(size) {}

  // Returns a node for events::inclusion_proof and its like. Errors: corrupt if a tile is missing or truncated;
  // unavailable if it cannot be read at present.
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

// Writes the tree leaf by leaf: full tiles at once, partial ones on request. One thread.
class TreeWriter {
 public:
  // Creates the folder if it is missing.
  static Result<TreeWriter> open(const std::string& folder);

  // Starts at a size that is a multiple of 256, with the full tiles below it. Errors: corrupt if one is missing; start
  // at 0 then.
  Status start_at(std::int64_t size);

  // At a size that is a multiple of 256, takes the next 256 leaves from the existing full tile and bundle if these
  // match each other. Returns false if they do not match or are missing; then the leaves must be added.
  Result<bool> take();

  // `entry` is the hashed entry, at most 65,535 bytes.
  Status add(std::string_view entry, const Hash& leaf);

  // Writes the partial tiles and the partial bundle of the current size.
  Status write_partial();
  // Rewrites invalid partial files of smaller sizes, since a power cut can leave some empty. Returns their number.
  Result<std::int64_t> rewrite_partial();
  // Makes everything written so far durable.
  Status sync();
  // Replaces the file `checkpoint` atomically.
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
  Result<std::int64_t> rewrite_partial_of(const std::string& full_path, std::string_view bytes,
                                          const std::vector<std::size_t>& ends);

  Fd folder_;
  std::int64_t size_ = 0;
  std::vector<std::string> levels_;  // the hashes of each level's last, partial tile
  std::string entries_;              // entries of the last, partial bundle
};

// Returns the number of leaves of the tree in this folder, 0 if there is none. Tiles are written only for committed
// events.
std::int64_t recorded_size(const std::string& folder);

// The tree files in this folder whose length differs from the one that their name implies, as after a power cut: the
// first leaf of the lowest, and their paths.
struct CutTiles {
  std::int64_t from = -1;  // -1: none
  std::vector<std::string> paths;
};
CutTiles cut_tiles(const std::string& folder);

// The root of a tile's hashes (a power of two of them).
Hash tile_root(std::string_view hashes);

}  // namespace muniment::audit
