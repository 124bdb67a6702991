// Applies one batch to its vector spaces: additions go into the spaces of their corpus; closings and removals apply
// wherever the chunk is.
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
  // Both outlive this object.
  VectorAdvance(VectorShard& shard, const EngineBatch& batch);

  Status embed(Embedder& embedder);                                    // embeds the chunks of all corpora
  Status embed_corpus(Embedder& embedder, const std::string& corpus);  // those of one corpus
  // Writes every space that does not have the batch yet, except those that `others` handle.
  Status write(const std::function<bool(std::string_view space)>& others);
  // Writes what was embedded, and moves no position.
  Status write_in_place();

 private:
  using Chunks = std::vector<const EngineChunk*>;
  Status embed_chunks(Embedder& embedder, const std::string& corpus, const Chunks& chunks);
  void end_chunks(const std::function<bool(std::string_view)>& others);
  std::map<std::string, SpaceStatus> statuses() const;

  VectorShard& shard_;
  const EngineBatch& batch_;
  std::map<std::string, Chunks> added_;                 // by corpus, without chunks that the same batch removes
  std::unordered_map<ChunkId, std::string> corpus_of_;  // corpora of the added chunks
  std::deque<Vectors> vectors_;                         // referenced by the batches
  std::map<std::string, VectorBatch> batches_;          // by space
};

}  // namespace muniment::retrieval
