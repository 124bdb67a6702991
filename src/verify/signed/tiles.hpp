// The static files from which others read the log (docs/format.md, Tiles), held against the leaves of the events:
// every hash tile and every entry bundle, each width that is there; and no other file.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.hpp"
#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/result.hpp"
#include "base/tile_path.hpp"
#include "verify/finding.hpp"

namespace muniment::verify {

struct TileCounts {
  std::int64_t files = 0;      // that were compared
  std::int64_t in_flight = 0;  // that are newer than what was read
  bool unfinished = false;     // a write has not its name yet
};

class TileFiles {
 public:
  // `published`: the files must be there up to this size. `started`: what is beyond the log's end and older than
  // this is not in flight.
  static Result<TileFiles> open(const std::string& folder, std::int64_t published, Time started, unsigned jobs,
                                Findings& findings);
  TileFiles(TileFiles&&) noexcept;
  TileFiles& operator=(TileFiles&&) noexcept;
  ~TileFiles();

  // Goes on behind a tree that was verified before: one tile a level is read again. Errors: corrupt when they are
  // not of the tree with this edge.
  Status resume(std::int64_t size, std::string_view edge);

  void add(const Hash& leaf);  // in the order of seq
  Status finish();             // after the last leaf: what is partial, and what else lies there
  TileCounts counts() const;

 private:
  struct Impl;
  explicit TileFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::verify
