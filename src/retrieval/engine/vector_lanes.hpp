// The vector lanes over one shard: `hash` for every chunk; `lsa` for a corpus that has a model; and those
// whose embedders are slow and that follow behind (late_lane.hpp): `use-lite` and `http`. Each corpus has a space of
// its own in each.
//
// The lanes' position is a space without vectors, written after all others of a batch: what it covers,
// they all have. A space that has come further before a crash passes over what it has.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "retrieval/embed/embedder.hpp"
#include "retrieval/engine/engine.hpp"
#include "retrieval/engine/late_lane.hpp"
#include "retrieval/engine/model_store.hpp"
#include "retrieval/vector/vector_shard.hpp"

namespace muniment::retrieval {

// What of a chunk is embedded.
std::string text_to_embed(const EngineChunk& chunk);

// "<identity>@<corpus>"
std::string space_of(const Embedder& embedder, std::string_view corpus);

class VectorLanes {
 public:
  struct Options {
    std::string shard_folder;
    std::string model_folder;
    std::string use_lite_folder;
    std::shared_ptr<Embedder> remote;  // of a server; null: there is no lane of one …
    std::string remote_missing;        // … and why not, where there should be
  };
  // Errors: corrupt (the shard), and those of files.
  static Result<std::unique_ptr<VectorLanes>> open(const Options& options);

  // One thread.
  Status index(const EngineBatch& batch);
  Status set_model(const EngineModel& model);
  Status embed_again(const std::string& corpus, const std::vector<EngineChunk>& chunks, bool last);

  // Nothing beside the shard has come further than this, since the shard's own position is written first and is
  // checksummed; where it is new, `set_bound` says what there was before it.
  std::int64_t bound() const;
  Status set_bound(std::int64_t next_seq);

  // Any thread.
  std::int64_t watermark() const { return watermark_.load(std::memory_order_acquire); }
  // From where on it wants batches: the slow lanes too.
  std::int64_t wanted_from() const;
  std::vector<std::string> all_corpora() const;
  // The lanes that have all of these corpora up to `next_seq`; what stands in the way of others goes to the answer.
  std::vector<std::string> available(const std::vector<std::string>& corpora, std::int64_t next_seq,
                                     LaneAnswer& answer) const;

  struct Question {
    std::string_view lane;
    std::string_view text;
    const std::vector<std::string>& corpora;
    const Filter& filter;
    VectorSearch how;
  };
  // The nearest in all of the corpora, best first, ties by id; `identities` gets those of the embedders.
  Result<std::vector<Hit>> search(const Question& question, std::set<std::string>& identities) const;

  std::vector<EngineModelStatus> models() const;
  std::vector<std::string> degraded() const;
  std::vector<std::string> absent() const;  // of it: what was never installed

 private:
  struct Models {
    std::shared_ptr<Embedder> current, waiting;
  };
  // A lane that there is not, for as long as this lives.
  struct Missing {
    std::string why;
    bool passing = false;  // it may be there in the next one
    bool absent = false;   // it was never installed: nothing is wrong
  };

  VectorLanes(std::unique_ptr<VectorShard> shard, ModelStore store);
  Status load_models();
  Status open_late_lanes(const Options& options);
  Status add_late_lane(std::shared_ptr<Embedder> embedder);
  Status drop_others_of(const Embedder& embedder);
  bool is_late(std::string_view space) const;
  const LateLane* late_lane(std::string_view name) const;
  Status mark(const char* space, std::int64_t next_seq);
  Status install_waiting(const std::string& corpus);
  std::shared_ptr<Embedder> embedder_for(std::string_view lane, const std::string& corpus) const;
  Result<std::vector<Hit>> search_once(const Question& question, std::set<std::string>& identities) const;

  const std::unique_ptr<VectorShard> shard_;
  const ModelStore store_;
  const std::unique_ptr<Embedder> hash_;
  std::vector<std::unique_ptr<LateLane>> late_;
  std::vector<Missing> missing_;
  std::atomic<std::int64_t> watermark_ = 0;

  mutable std::mutex models_mutex_;
  std::map<std::string, Models> models_;  // by corpus
  std::atomic<std::uint64_t> swaps_ = 0;  // of a model that answered: its space went after that
  mutable std::mutex corpora_mutex_;
  std::set<std::string> corpora_;  // that have chunks
};

}  // namespace muniment::retrieval
