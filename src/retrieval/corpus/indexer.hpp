// Keeps the search engine up with the document tables. The engine's own watermark says from where on:
// after a crash, a rebuild or a folder that was deleted it is simply further back. The indexer reads what
// changed from there, takes the texts out of the artifacts, checks them against their hashes, and sends
// them in batches. It also has the models trained.
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

// The facts of a chunk, by which it can be filtered.
Facts facts_of(const store::DocumentRow& document, const std::string& owner);

class Indexer {
 public:
  Indexer(store::LogPlace place, DocumentFollower& documents, store::ArtifactFiles& files, SearchClient& search,
          ModelTrainer& trainer);

  void start();
  void stop() { worker_.stop(); }

  // The indexes hold what comes before it. Events that change nothing in them are not sent: their own position may be
  // further back.
  std::int64_t next_seq() const { return next_seq_.load(std::memory_order_acquire); }
  // The position after the last batch that changed them: equal for equal indexes.
  std::int64_t next_change() const { return next_change_.load(std::memory_order_acquire); }
  // How often the engine was begun with: what it works without may change with each start.
  std::int64_t engine_starts() const { return engine_starts_.load(std::memory_order_acquire); }
  // Errors: deadline_exceeded, with why it does not get on.
  Status wait_for(std::int64_t seq, Deadline deadline);
  std::string problem() const;
  // What the engine works without, as it said last.
  std::vector<std::string> degraded() const;
  std::vector<std::string> absent() const;  // of it: what was never installed

 private:
  void follow();
  Result<bool> step();  // false: nothing was left to do
  Result<std::int64_t> watermark();
  Result<EngineBatch> read_batch(std::int64_t from, std::int64_t end);
  Status add_texts(const std::vector<store::DocumentRow>& rows, EngineBatch& batch);
  Result<std::optional<EngineChunk>> engine_chunk(const store::ChunkInDocument& item);
  Result<bool> give_models();  // false: the engine has those that the log names
  Status fill_model();
  void set_problem(std::string text);

  // A corpus whose vectors are made anew by a new model, part by part.
  struct Refill {
    std::string corpus;
    std::int64_t after = 0;  // chunks up to here have been sent
  };

  DocumentFollower& documents_;
  store::ArtifactFiles& files_;
  SearchClient& search_;
  ModelTrainer& trainer_;
  store::Reader reader_;
  std::map<std::string, std::string> owners_;  // of corpora
  std::optional<Refill> refill_;
  std::int64_t models_given_ = -1;  // the trainer's version that the engine has
  std::vector<EngineModelStatus> engine_models_;
  std::int64_t given_ = 0;     // the position that the engine has
  std::int64_t restarts_ = 0;  // of the child, when its watermark was asked for

  std::atomic<std::int64_t> next_seq_{-1};  // -1: the engine was not asked yet
  std::atomic<std::int64_t> next_change_{0};
  std::atomic<std::int64_t> engine_starts_{0};
  std::string problem_;  // guarded by the worker's lock, as are the next two
  std::vector<std::string> degraded_, absent_;
  WorkerThread worker_;
};

}  // namespace muniment::retrieval
