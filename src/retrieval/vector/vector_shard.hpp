// The vector lane: int8 codes and a graph (HNSW, Malkov and Yashunin 2016) in RocksDB, mirrored in
// memory. One space for each embedder's identity and corpus: vectors of two models never meet.
//
// One writer; any number of threads may search meanwhile. What a write changes, its graph included, and
// the watermark go to RocksDB in one WriteBatch; a start is one scan.
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
  std::span<const float> vector;  // of the space's dimension, unit length; zero: nothing to go by, never found
  Facts facts;
};

// One advance of one space; other spaces stay where they are.
struct VectorBatch {
  std::string space;  // "lsa/1:4f2a…@notes": the embedder's identity @ the corpus
  std::size_t dimension = 0;
  std::int64_t next_seq = 0;  // the space's watermark after it
  std::vector<VectorEntry> add;
  std::vector<std::pair<ChunkId, std::int64_t>> close;  // id, valid_to: not current any more, found only with as_of
  std::vector<ChunkId> remove;                          // erased or revoked: gone from disk as well
};

struct VectorSearch {
  std::size_t k = 10;
  bool exact = false;    // scan everything: for auditors
  std::size_t beam = 0;  // ef; 0: what the shard thinks right for k
};

struct SpaceStatus {
  std::string space;
  std::size_t dimension = 0;
  std::int64_t next_seq = 0;
  std::int64_t vectors = 0;  // current ones
  std::int64_t closed = 0;
  std::int64_t bytes_in_memory = 0;
};

class VectorShard {
 public:
  // Opens or makes the shard in `folder`. Errors: corrupt (remove the folder and fill it again), conflict (locked).
  static Result<std::unique_ptr<VectorShard>> open(const std::string& folder);
  virtual ~VectorShard() = default;

  // Durable when it returns; a search sees all of it or nothing. The first batch makes the space. A chunk that is there
  // is replaced by one that is added; to close or remove one that is not there changes nothing: a batch may come twice.
  // What is removed is in no file any more (which costs a rewrite of the shard's files). Errors: invalid_argument
  // (dimension, a number that is not finite), too_large, conflict (the watermark would go back), corrupt; after a write
  // that failed on the disk every later one fails: open the shard again.
  virtual Status write(const VectorBatch& batch) = 0;
  virtual Status drop(std::string_view space) = 0;  // gone from disk as well; an unknown one is no error
  // The nearest by cosine, best first, ties by id. An unknown space has none. Errors: invalid_argument
  // for a vector of another dimension, corrupt where as_of reads a history that is damaged.
  virtual Result<std::vector<Hit>> search(std::string_view space, std::span<const float> vector, const Filter& filter,
                                          const VectorSearch& how) const = 0;
  virtual std::vector<SpaceStatus> spaces() const = 0;
  // Those in which the chunk is current.
  virtual std::vector<std::string> spaces_with(ChunkId chunk) const = 0;
};

}  // namespace muniment::retrieval
