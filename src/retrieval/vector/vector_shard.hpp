// The vector lane: int8 codes and a graph (HNSW, Malkov and Yashunin 2016) in RocksDB, mirrored in memory. There is one
// space for each embedder's identity and corpus, so that vectors of two models are never compared.
//
// One writer; any number of threads may search meanwhile. A write's changes, including its graph and the watermark, go
// to RocksDB in one WriteBatch; a start is one scan.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "retrieval/facts.hpp"

namespace muniment::retrieval {

struct VectorEntry {
  ChunkId id = 0;
  std::span<const float> vector;  // in the space's dimension, unit length; zero: no features, never found
  Facts facts;
};

// One advance of one space; other spaces keep their position.
struct VectorBatch {
  std::string space;  // "lsa/1:4f2a…@notes": the embedder's identity @ the corpus
  std::size_t dimension = 0;
  std::int64_t next_seq = 0;  // the space's watermark after the batch
  std::vector<VectorEntry> add;
  std::vector<std::pair<ChunkId, std::int64_t>>
      close;                    // id and valid_to of chunks that are closed, and found only with as_of
  std::vector<ChunkId> remove;  // erased or revoked: removed from disk as well
};

struct VectorSearch {
  std::size_t k = 10;
  bool exact = false;    // scan every vector: for auditors
  std::size_t beam = 0;  // ef; 0: the shard's default for k
};

struct SpaceStatus {
  std::string space;
  std::size_t dimension = 0;
  std::int64_t next_seq = 0;
  std::int64_t vectors = 0;  // number of current vectors
  std::int64_t closed = 0;
  std::int64_t bytes_in_memory = 0;
};

class VectorShard {
 public:
  // Opens or creates the shard in `folder`. Errors: corrupt (remove the folder and fill it again), conflict (locked).
  static Result<std::unique_ptr<VectorShard>> open(const std::string& folder);
  virtual ~VectorShard() = default;

  // Applies a batch. It is durable on return, and a search sees all of it or nothing. The first batch creates the
  // space. An added chunk replaces an existing one; closing or removing a missing one changes nothing, so a batch may
  // be applied twice. After a removal, no file contains the vector (which costs a rewrite of the shard's files).
  // Errors: invalid_argument (dimension, a number that is not finite), too_large, conflict (the watermark would
  // decrease), corrupt; after a failed write to the disk every later one fails: open the shard again.
  virtual Status write(const VectorBatch& batch) = 0;
  virtual Status drop(std::string_view space) = 0;  // removed from disk as well; ignores an unknown space
  // Returns the nearest by cosine, best first, ties by id; none for an unknown space. Errors: invalid_argument for a
  // vector of a different dimension, corrupt if as_of reads a damaged history.
  virtual Result<std::vector<Hit>> search(std::string_view space, std::span<const float> vector, const Filter& filter,
                                          const VectorSearch& how) const = 0;
  virtual bool has(std::string_view space) const = 0;
  virtual std::vector<SpaceStatus> spaces() const = 0;
  // Returns the spaces in which the chunk is current.
  virtual std::vector<std::string> spaces_with(ChunkId chunk) const = 0;
};

}  // namespace muniment::retrieval
