// Checks the static files of the log (docs/format.md, Tiles) against the leaves of the events: every hash tile and
// every entry bundle in every width, and no other file.
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
  std::int64_t files = 0;      // files that were compared
  std::int64_t in_flight = 0;  // files newer than the events that were read
  bool unfinished = false;     // a write is not finished
};

class TileFiles {
 public:
  // Opens the tiles. The files must exist up to the size `published`. A file beyond the log's end that is older than
  // `started` is a finding, not in flight.
  static Result<TileFiles> open(const std::string& folder, std::int64_t published, Time started, unsigned jobs,
                                Findings& findings);
  TileFiles(TileFiles&&) noexcept;
  TileFiles& operator=(TileFiles&&) noexcept;
  ~TileFiles();

  // Resumes from a verified tree: reads one tile of each level again. Errors: corrupt if the tiles do not match the
  // tree with this edge.
  Status resume(std::int64_t size, std::string_view edge);

  void add(const Hash& leaf);  // call in the order of seq
  Status finish();             // call after the last leaf; checks partial tiles and looks for other files
  TileCounts counts() const;

 private:
  struct Impl;
  explicit TileFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::verify
