// A vector shard in one piece: its vectors are scanned where they are, in a mapped file, and a changed shard is written
// anew (docs/format.md, "Packed vectors"). For collections that one file holds; a daemon's shard has a graph.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "retrieval/vector/vector_shard.hpp"

namespace muniment::retrieval {

class PackedShard : public VectorShard {
 public:
  // Opens what `encode` returned; an empty text is an empty shard. The bytes, aligned to 8, outlive the shard. One
  // thread, except that any number may search an unchanged shard. Errors: corrupt.
  static Result<std::unique_ptr<PackedShard>> open(std::string_view bytes);
  virtual std::string encode() const = 0;
};

}  // namespace muniment::retrieval
