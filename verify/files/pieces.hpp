// Computes the pieces of a large file (docs/format.md, Pieces) without the writer's code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/crypto/chained_sha256.hpp"
#include "base/crypto/sha256.hpp"

namespace muniment::verify {

inline constexpr std::string_view pieces_suffix = ".pieces";
inline constexpr std::int64_t unpieced_bytes_max = 1 << 20;  // larger files have pieces

struct PieceTree {
  std::string file;  // content of the `.pieces` file
  Hash root{};
};

// Hashes a file and records the SHA-256 state after each piece.
class PieceDigest {
 public:
  void update(std::string_view bytes);
  Hash finish() { return digest_.finish(); }
  PieceTree tree() const;  // only for a file that has pieces

 private:
  ChainedSha256 digest_;
  std::int64_t size_ = 0;
  std::string values_;
};

}  // namespace muniment::verify
