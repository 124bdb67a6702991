// Searches a space's current vectors, either by scanning those that pass the filter or by the graph.
#pragma once

#include <cstddef>
#include <vector>

#include "retrieval/vector/codes.hpp"
#include "retrieval/vector/compiled_filter.hpp"
#include "retrieval/vector/space.hpp"
#include "retrieval/vector/vector_shard.hpp"

namespace muniment::retrieval::vec {

// The best k chunks, ties by id, independent of the order of insertion.
class BestChunks {
 public:
  struct Chunk {
    float score = 0;
    ChunkId id = 0;
    bool operator<(const Chunk& other) const { return score > other.score || (score == other.score && id < other.id); }
  };
  explicit BestChunks(std::size_t k) : k_(k) {}

  // Only higher scores are added.
  float threshold() const { return full() ? heap_.front().score : -1e30F; }
  void add(float score, ChunkId id);
  std::vector<Chunk> sorted() &&;

 private:
  bool full() const { return heap_.size() >= k_; }
  std::size_t k_;
  std::vector<Chunk> heap_;  // the worst in front
};

// Adds the best of the live vectors to `best`. The space's lock must be held.
void search_live(const Space& space, const Probe& probe, const CompiledFilter& filter, const VectorSearch& how,
                 BestChunks& best);

}  // namespace muniment::retrieval::vec
