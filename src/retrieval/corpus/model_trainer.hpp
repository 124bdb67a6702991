// Trains the epochs of the lsa embedder: a model is trained for a corpus once it is large enough, and again when the
// corpus has grown by a quarter. A trained model is an artifact with the event embedder.trained. A rebuild does not
// train again; it uses the model that the log names.
#pragma once

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
#include "store/append/appender.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/reader.hpp"
#include "store/tables/runs.hpp"

namespace muniment::retrieval {

// The newest model of a corpus according to the log.
struct Epoch {
  std::string corpus;
  std::string embedder;  // identity of the embedder
  Uuid artifact_id;
  Hash hash{};
  std::int64_t passages = 0;  // number of training passages
};

// Returns the epoch in the body of embedder.trained; nullopt if it was erased.
std::optional<Epoch> epoch_of(const events::Event& event);

class ModelTrainer {
 public:
  ModelTrainer(store::LogPlace place, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
               DocumentFollower& documents, store::ArtifactFiles& files);

  void start();
  void stop() { worker_.stop(); }
  void wake();           // documents were added or removed
  void hold(bool held);  // the indexes are behind: a model trained now would soon be outdated

  // Returns the newest epoch of each corpus, as far as the log was read; `version` changes with them.
  std::vector<Epoch> epochs() const;
  std::int64_t version() const { return version_.load(std::memory_order_acquire); }
  // Reads the model. Errors: corrupt if the artifact does not match the record; not_found.
  Result<EngineModel> model(const Epoch& epoch, store::Reader& reader) const;

 private:
  void follow();
  Status read_epochs();
  Status train_due();
  Status train(const store::CorpusRow& corpus);
  Status record(const std::string& corpus, const std::string& identity, std::size_t dimension, const std::string& model,
                const std::string& vocabulary_hash, std::int64_t passages, std::int64_t watermark);

  Clock& clock_;
  store::Appender& appender_;
  store::RunDirectory& runs_;
  DocumentFollower& documents_;
  store::ArtifactFiles& files_;
  store::Reader reader_;

  bool woken_ = true;  // guarded by the worker's lock, like the next two
  bool held_ = false;
  std::map<std::string, Epoch> epochs_;  // key: corpus
  std::atomic<std::int64_t> version_{0};
  WorkerThread worker_;
};

}  // namespace muniment::retrieval
