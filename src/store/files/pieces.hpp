// The pieces of a large file, by which a slice of it is verified without reading the rest (docs/format.md, Pieces).
//
// Whoever has the true chaining values of SHA-256 before and behind a piece of 64 KiB knows whether the piece is what
// was hashed, as surely as by hashing the whole: another piece between the same two would be another file with the same
// SHA-256. They cost nothing where a file is hashed anyway. A tree over them, up to 256 to a node, is kept in a file;
// its root is what must be known to be true.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/crypto/chained_sha256.hpp"
#include "base/crypto/sha256.hpp"
#include "base/result.hpp"

namespace muniment::store {

inline constexpr std::int64_t piece_bytes = 64 << 10;
inline constexpr std::int64_t unpieced_bytes_max = 1 << 20;   // up to here a file is verified as a whole
inline constexpr std::string_view pieces_suffix = ".pieces";  // behind the name of the file that they are of

// Whether a file of this size has pieces.
bool has_pieces(std::int64_t size_bytes);

struct Pieces {
  Hash root{};
  std::string file;  // the levels of the tree, the lowest first, without the root
};

// SHA-256 of a file of any size, and its pieces by the way.
class PieceHasher {
 public:
  void update(std::string_view bytes);
  Hash finish();          // of the whole; then:
  Pieces pieces() const;  // empty for a file that has none

 private:
  ChainedSha256 hash_;
  std::int64_t size_ = 0;
  std::string values_;  // after each whole piece
};

// Looks up chaining values in a file of pieces, each with its path to the root.
class PieceTree {
 public:
  // Reads `length` bytes at `offset` of the file of pieces.
  using Read = std::function<Result<std::string>(std::int64_t offset, std::size_t length)>;
  PieceTree(std::int64_t size_bytes, const Hash& root, Read read);

  // Whether these are the bytes of the pieces from `first` on, whole ones but for the file's last; `whole` is the
  // SHA-256 of the file. Errors: corrupt where the file of pieces does not lead to the root, so that nothing is known;
  // those of reading.
  Result<bool> fits(std::int64_t first, std::string_view bytes, const Hash& whole);

 private:
  struct Level {
    std::int64_t offset = 0;  // in the file
    std::int64_t count = 0;   // of values
  };
  Result<Hash> value(std::size_t level, std::int64_t index);

  const std::int64_t size_bytes_;
  const Hash root_;
  const Read read_;
  std::vector<Level> levels_;
  std::map<std::pair<std::size_t, std::int64_t>, std::string> verified_;  // nodes, by level and number
};

}  // namespace muniment::store
