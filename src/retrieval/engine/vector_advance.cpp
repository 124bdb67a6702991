// Embeds a batch and writes it into vector spaces.
#include "retrieval/engine/vector_advance.hpp"

#include <algorithm>
#include <unordered_set>

#include "retrieval/engine/vector_lanes.hpp"

namespace muniment::retrieval {

VectorAdvance::VectorAdvance(VectorShard& shard, const EngineBatch& batch) : shard_(shard), batch_(batch) {
  const std::unordered_set<ChunkId> removed(batch.remove.begin(), batch.remove.end());
  for (const EngineChunk& chunk : batch.add) {
    if (removed.contains(chunk.id)) continue;
    added_[chunk.corpus].push_back(&chunk);
    corpus_of_[chunk.id] = chunk.corpus;
  }
}

Status VectorAdvance::embed(Embedder& embedder) {
  for (const auto& [corpus, chunks] : added_) RETURN_IF_ERROR(embed_chunks(embedder, corpus, chunks));
  return success();
}

Status VectorAdvance::embed_corpus(Embedder& embedder, const std::string& corpus) {
  const auto found = added_.find(corpus);
  return found == added_.end() ? success() : embed_chunks(embedder, corpus, found->second);
}

Status VectorAdvance::embed_chunks(Embedder& embedder, const std::string& corpus, const Chunks& chunks) {
  std::vector<std::string> texts;
  texts.reserve(chunks.size());
  for (const EngineChunk* chunk : chunks) texts.push_back(text_to_embed(*chunk));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  ASSIGN_OR_RETURN(Vectors made, embedder.embed(views, TextKind::document));
  const Vectors& vectors = vectors_.emplace_back(std::move(made));
  const std::string space = space_of(embedder, corpus);
  VectorBatch& batch = batches_[space];
  batch.space = space;
  batch.dimension = embedder.identity().dimension;
  for (std::size_t i = 0; i < chunks.size(); ++i) batch.add.push_back({chunks[i]->id, vectors[i], chunks[i]->facts});
  return success();
}

std::map<std::string, SpaceStatus> VectorAdvance::statuses() const {
  std::map<std::string, SpaceStatus> out;
  for (SpaceStatus& space : shard_.spaces()) out.emplace(space.space, space);
  return out;
}

// A chunk that this batch adds is in no space yet; a closed one is where the shard records it; a removed one may have
// been closed long ago, so every space is searched.
void VectorAdvance::end_chunks(const std::function<bool(std::string_view)>& others) {
  const auto touch = [this](const std::string& space) -> VectorBatch& {
    VectorBatch& batch = batches_[space];
    batch.space = space;
    return batch;
  };
  for (const auto& ending : batch_.close) {
    for (const std::string& space : shard_.spaces_with(ending.first)) {
      if (!others(space)) touch(space).close.push_back(ending);
    }
    const auto brought = corpus_of_.find(ending.first);
    if (brought == corpus_of_.end()) continue;
    for (auto& [space, batch] : batches_) {
      if (space.ends_with("@" + brought->second)) batch.close.push_back(ending);
    }
  }
  if (batch_.remove.empty()) return;
  for (const SpaceStatus& space : shard_.spaces()) {
    if (!others(space.space)) touch(space.space).remove = batch_.remove;
  }
}

Status VectorAdvance::write(const std::function<bool(std::string_view space)>& others) {
  end_chunks(others);
  const auto known = statuses();
  for (auto& [name, batch] : batches_) {
    const auto status = known.find(name);
    if (status != known.end() && status->second.next_seq >= batch_.next_seq) continue;  // written before a crash
    if (batch.dimension == 0) batch.dimension = status->second.dimension;
    batch.next_seq = batch_.next_seq;
    RETURN_IF_ERROR(shard_.write(batch));
  }
  return success();
}

Status VectorAdvance::write_in_place() {
  const auto known = statuses();
  for (auto& [name, batch] : batches_) {
    const auto status = known.find(name);
    batch.next_seq = status == known.end() ? 0 : status->second.next_seq;
    RETURN_IF_ERROR(shard_.write(batch));
  }
  return success();
}

}  // namespace muniment::retrieval
