// Retrieval in the daemon: the follower of the document tables, the search child, the indexer that updates it, and the
// retriever that answers queries. They start and stop in this order.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "retrieval/answer/model_drafter.hpp"
#include "retrieval/child/search/search_client.hpp"
#include "retrieval/corpus/document_follower.hpp"
#include "retrieval/corpus/indexer.hpp"
#include "retrieval/corpus/model_trainer.hpp"
#include "retrieval/query/retriever.hpp"
#include "retrieval/query/shared_cache.hpp"
#include "store/append/tail.hpp"
#include "store/files/artifact_files.hpp"
#include "store/logs/log_place.hpp"

namespace muniment::retrieval {

struct ServiceOptions {
  store::LogPlace place;
  SearchClientOptions search;
  Retriever::Options retriever{};
  SharedCacheOptions shared_cache{};
  AnswerModelOptions answer_model{};
};

// The objects that it uses, which outlive it.
struct Surroundings {
  Clock& clock;
  store::Appender& appender;
  store::RunDirectory& runs;
  const store::Tail& tail;
  store::ArtifactFiles& files;
};

class Service {
 public:
  // Errors: unavailable if the search child cannot be started; those of the shared cache's settings.
  static Result<std::unique_ptr<Service>> start(ServiceOptions options, const Surroundings& around);
  ~Service();  // calls `stop`

  // Close the tail first: that wakes the follower.
  void stop();

  DocumentFollower& documents() { return documents_; }
  SearchClient& search() { return *search_; }
  Indexer& indexer() { return indexer_; }
  Retriever& retriever() { return retriever_; }
  const ModelDrafter* answer_model() const { return answer_model_.get(); }  // nullptr: there is none
  SharedCache* shared_cache() { return shared_cache_.get(); }               // nullptr: there is none

 private:
  Service(const ServiceOptions& options, std::unique_ptr<SearchClient> search, const Surroundings& around);

  DocumentFollower documents_;
  ModelTrainer trainer_;
  std::unique_ptr<SearchClient> search_;
  Indexer indexer_;
  Retriever retriever_;
  std::unique_ptr<SharedCache> shared_cache_;
  std::unique_ptr<ModelDrafter> answer_model_;
};

}  // namespace muniment::retrieval
