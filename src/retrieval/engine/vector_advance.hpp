// One batch on its way into the vector spaces that it concerns: what is added goes into those of its
// corpus, what ends ends wherever it is.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "retrieval/embed/embedder.hpp"
#include "retrieval/engine/engine.hpp"
#include "retrieval/vector/vector_shard.hpp"

namespace muniment::retrieval {

class VectorAdvance {
 public:
  // Both outlive it.
  VectorAdvance(VectorShard& shard, const EngineBatch& batch);

  Status embed(Embedder& embedder);                                    // the chunks of all corpora
  Status embed_corpus(Embedder& embedder, const std::string& corpus);  // those of one
  // Writes every space that is not further than the batch, but for those that `others` care for.
  Status write(const std::function<bool(std::string_view space)>& others);
  // Writes what was embedded, and no space moves.
  Status write_in_place();

 private:
  using Chunks = std::vector<const EngineChunk*>;
  Status embed_chunks(Embedder& embedder, const std::string& corpus, const Chunks& chunks);
  void end_chunks(const std::function<bool(std::string_view)>& others);
  std::map<std::string, SpaceStatus> statuses() const;

  VectorShard& shard_;
  const EngineBatch& batch_;
  std::map<std::string, Chunks> added_;                 // by corpus, less what is removed by the same batch
  std::unordered_map<ChunkId, std::string> corpus_of_;  // of those
  std::deque<Vectors> vectors_;                         // what the batches point to
  std::map<std::string, VectorBatch> batches_;          // by space
};

}  // namespace muniment::retrieval
