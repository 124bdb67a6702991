// Verifies slices of a large file by its pieces, without reading the rest (docs/format.md, Pieces).
//
// Given the true SHA-256 chaining values before and after a piece of 64 KiB, hashing the piece proves its content as
// reliably as hashing the whole file: a different piece between the same values would yield a second file with the same
// SHA-256. The values are a by-product of hashing a file. A file stores a tree over them, with up to 256 values in a
// node; only the root must be trusted.
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
inline constexpr std::int64_t unpieced_bytes_max = 1 << 20;   // files up to this size are verified as a whole
inline constexpr std::string_view pieces_suffix = ".pieces";  // suffix of the file's name

// Returns whether a file of this size has pieces.
bool has_pieces(std::int64_t size_bytes);

struct Pieces {
  Hash root{};
  std::string file;  // levels of the tree, lowest first, without the root
};

// Computes the SHA-256 and the pieces of a file of any size.
class PieceHasher {
 public:
  void update(std::string_view bytes);
  Hash finish();          // returns the hash of the file
  Pieces pieces() const;  // call after finish; empty if the file has no pieces

 private:
  ChainedSha256 hash_;
  std::int64_t size_ = 0;
  std::string values_;  // one value after each whole piece
};

// Looks up chaining values in a file of pieces and verifies their path to the root.
class PieceTree {
 public:
  // Reads `length` bytes at `offset` of the file of pieces.
  using Read = std::function<Result<std::string>(std::int64_t offset, std::size_t length)>;
  PieceTree(std::int64_t size_bytes, const Hash& root, Read read);

  // Returns whether the bytes match the pieces from `first` on. The pieces must be whole, except the last one of the
  // file. `whole` is the SHA-256 of the file. Errors: corrupt if the file of pieces does not lead to the root and
  // therefore proves nothing; those of reading.
  Result<bool> fits(std::int64_t first, std::string_view bytes, const Hash& whole);

 private:
  struct Level {
    std::int64_t offset = 0;  // in the file
    std::int64_t count = 0;   // number of values
  };
  Result<Hash> value(std::size_t level, std::int64_t index);

  const std::int64_t size_bytes_;
  const Hash root_;
  const Read read_;
  std::vector<Level> levels_;
  std::map<std::pair<std::size_t, std::int64_t>, std::string> verified_;  // keys: level and number of the node
};

}  // namespace muniment::store
