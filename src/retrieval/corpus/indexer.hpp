// Keeps the search engine up to date with the document tables. The engine's watermark determines where to start: after
// a crash, a rebuild or a deleted folder it is smaller. The indexer reads the changes from there, takes the texts from
// the artifacts, checks their hashes, and sends them in batches. It also requests the training of models.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/process/worker_thread.hpp"
#include "base/result.hpp"
#include "retrieval/corpus/document_follower.hpp"
#include "retrieval/engine/engine.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/reader.hpp"

namespace muniment::retrieval {

class ModelTrainer;
class SearchClient;

class Indexer {
 public:
  Indexer(store::LogPlace place, DocumentFollower& documents, store::ArtifactFiles& files, SearchClient& search,
          ModelTrainer& trainer);

  void start();
  void stop() { worker_.stop(); }

  // Returns the position before which the indexes include everything. Events without effect on them are not sent, so
  // the position of the indexes themselves may be smaller.
  std::int64_t next_seq() const { return next_seq_.load(std::memory_order_acquire); }
  // Returns the position after the last batch that changed the indexes. Equal values mean equal indexes.
  std::int64_t next_change() const { return next_change_.load(std::memory_order_acquire); }
  // Returns the number of current passages in the indexes.
  std::int64_t passages() const { return passages_.load(std::memory_order_acquire); }
  // Returns the number of starts of the engine. The parts that it lacks may change with each start.
  std::int64_t engine_starts() const { return engine_starts_.load(std::memory_order_acquire); }
  // Waits until the indexes include the events before `seq`. Errors: deadline_exceeded, with the reason for the delay.
  Status wait_for(std::int64_t seq, Deadline deadline);
  std::string problem() const;
  // Returns the parts that the engine lacks, as last reported.
  std::vector<std::string> degraded() const;
  std::vector<std::string> absent() const;  // returns the subset that was never installed
  // Compares the indexes with the log: returns the number of current passages that they lack, or hold beyond the log.
  std::int64_t differing_passages() const { return differing_.load(std::memory_order_acquire); }
  // Slow lanes that have not embedded everything, as reported about a second ago.
  std::vector<std::string> behind() const;

 private:
  void follow();
  Result<bool> step();  // returns false if there was nothing to do
  Result<std::int64_t> watermark();
  void look_at_lag();
  Status count_passages(std::int64_t next_seq);
  Result<EngineBatch> read_batch(std::int64_t from, std::int64_t end);
  Status add_texts(const std::vector<store::DocumentRow>& rows, EngineBatch& batch);
  Result<std::optional<EngineChunk>> engine_chunk(const store::ChunkInDocument& item);
  Result<bool> give_models();  // returns false if the engine has the models that the log names
  Status fill_model();
  void set_problem(std::string text);

  // A corpus whose vectors are computed again by a new model, part by part.
  struct Refill {
    std::string corpus;
    std::int64_t after = 0;  // the last chunk that was sent
  };

  DocumentFollower& documents_;
  store::ArtifactFiles& files_;
  SearchClient& search_;
  ModelTrainer& trainer_;
  store::Reader reader_;
  std::map<std::string, std::string> owners_;  // owners by corpus
  std::optional<Refill> refill_;
  std::int64_t models_given_ = -1;  // version of the trainer's models that the engine has
  std::vector<EngineModelStatus> engine_models_;
  Monotonic next_look_{};      // at the lag
  std::int64_t given_ = 0;     // position that the engine has
  std::int64_t restarts_ = 0;  // restarts of the child when its watermark was read

  std::atomic<std::int64_t> next_seq_{-1};  // -1: the position is not known yet
  std::atomic<std::int64_t> next_change_{0};
  std::atomic<std::int64_t> passages_{0};
  std::atomic<std::int64_t> engine_starts_{0};
  std::atomic<std::int64_t> differing_{0};
  bool counted_ = false;  // since the last change of the indexes
  std::string problem_;   // guarded by the worker's lock, like the next ones
  std::vector<std::string> degraded_, absent_, behind_;
  WorkerThread worker_;
};

}  // namespace muniment::retrieval
