// The vector lanes over one shard: `hash` for every chunk; `lsa` for a corpus with a model; and the lanes with slow
// embedders, which follow behind (late_lane.hpp): `encoder` and `http`. Each corpus has its own space in each lane.
//
// The lanes' position is a space without vectors, written after all others of a batch: every lane has what it covers. A
// space that was further before a crash skips what it has.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "retrieval/embed/embedder.hpp"
#include "retrieval/engine/engine.hpp"
#include "retrieval/engine/late_lane.hpp"
#include "retrieval/engine/model_store.hpp"
#include "retrieval/vector/vector_shard.hpp"

namespace muniment::retrieval {

// The text of a chunk that is embedded.
std::string text_to_embed(const EngineChunk& chunk);
// The same, preceded by the title of its document unless the text begins with it.
std::string titled_text_to_embed(const EngineChunk& chunk);

// "<identity>@<corpus>"; for later parts of long chunks "<identity>#<part>@<corpus>", with parts from 0 on: a space has
// one vector per chunk, and only some chunks have a further part.
std::string space_of(const Embedder& embedder, std::string_view corpus, std::size_t part = 0);
bool is_space_of(const Embedder& embedder, std::string_view space);

class VectorLanes {
 public:
  struct Options {
    std::string shard_folder;
    std::string model_folder;
    std::string models_folder;         // of sentence encoders; empty: no encoder is used
    std::shared_ptr<Embedder> remote;  // embedder of a server; null: no such lane
    std::string remote_missing;        // the reason for its absence, if it is configured
  };
  // Errors: corrupt (the shard), and those of files.
  static Result<std::unique_ptr<VectorLanes>> open(const Options& options);

  // Takes over a shard with its models; `store` receives further ones.
  static Result<std::unique_ptr<VectorLanes>> over(std::unique_ptr<VectorShard> shard, ModelStore store,
                                                   const std::vector<StoredModel>& models);

  // One thread.
  Status index(const EngineBatch& batch);
  Status set_model(const EngineModel& model);
  Status embed_again(const std::string& corpus, const std::vector<EngineChunk>& chunks, bool last);

  // Upper bound of all positions in the shard, because the shard's own position is written first and has a checksum.
  // For a new shard, `set_bound` provides the earlier bound.
  std::int64_t bound() const;
  Status set_bound(std::int64_t next_seq);

  // Any thread.
  std::int64_t watermark() const { return watermark_.load(std::memory_order_acquire); }
  // The position from which batches are needed, also by the slow lanes.
  std::int64_t wanted_from() const;
  std::vector<std::string> all_corpora() const;
  // The lanes that have all of these corpora up to `next_seq`; the reasons for which others are missing go to the
  // answer.
  std::vector<std::string> available(const std::vector<std::string>& corpora, std::int64_t next_seq,
                                     LaneAnswer& answer) const;

  struct Question {
    std::string_view lane;
    std::string_view text;
    const std::vector<std::string>& corpora;
    const Filter& filter;
    VectorSearch how;
  };
  // Returns the nearest chunks in all of the corpora, best first, ties by id; `identities` receives those of the
  // embedders.
  Result<std::vector<Hit>> search(const Question& question, std::set<std::string>& identities) const;

  std::vector<EngineModelStatus> models() const;
  std::vector<std::string> degraded() const;
  std::vector<std::string> behind(std::int64_t next_seq) const;  // slow lanes that have not embedded everything
  std::int64_t waiting() const;                                  // number of chunks that they have not embedded
  std::vector<std::string> absent() const;                       // the subset that was never installed

 private:
  struct Models {
    std::shared_ptr<Embedder> current, waiting;
  };
  // A lane that is missing for the lifetime of this object.
  struct Missing {
    std::string why;
    bool passing = false;  // the next process may have it
    bool absent = false;   // it was never installed, which is not a fault
  };

  VectorLanes(std::unique_ptr<VectorShard> shard, ModelStore store);
  Status load_models(const std::vector<StoredModel>& stored);
  Status open_late_lanes(const Options& options);
  Status add_encoder(const std::string& models_folder);
  Status add_late_lane(std::shared_ptr<Embedder> embedder);
  Status drop_others_of(const Embedder& embedder);
  Status drop_unless(const std::function<bool(std::string_view identity)>& kept);
  bool is_late(std::string_view space) const;
  const LateLane* late_lane(std::string_view name) const;
  Status mark(const char* space, std::int64_t next_seq);
  Status install_waiting(const std::string& corpus);
  std::shared_ptr<Embedder> embedder_for(std::string_view lane, const std::string& corpus) const;
  Status search_corpus(const Question& question, const Embedder& embedder, const std::string& corpus,
                       std::span<const float> vector, std::vector<Hit>& hits) const;
  Result<std::vector<Hit>> search_once(const Question& question, std::set<std::string>& identities) const;

  const std::unique_ptr<VectorShard> shard_;
  const ModelStore store_;
  const std::unique_ptr<Embedder> hash_;
  std::vector<std::unique_ptr<LateLane>> late_;
  std::vector<Missing> missing_;
  std::atomic<std::int64_t> watermark_ = 0;

  mutable std::mutex models_mutex_;
  std::map<std::string, Models> models_;  // by corpus
  std::atomic<std::uint64_t> swaps_ =
      0;  // number of replaced models; a space is removed after its replacement was counted
  mutable std::mutex corpora_mutex_;
  std::set<std::string> corpora_;  // that have chunks
};

}  // namespace muniment::retrieval
