// The query pipeline (docs/retrieval.md): parses the markup and plans (query_plan.hpp), ranks (ranking.hpp), verifies
// each hit against the chunk table and its bytes, and answers with cards.
//
// The answer depends on the plan's key alone: query, mode, topK, group, filters, profile, helpers, scope, as_of, the
// positions of index and feedback, and the available lanes. Equal inputs give equal answers, cached or not, alone or in
// a batch, if hooks answer equal questions equally.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "retrieval/corpus/document_follower.hpp"
#include "retrieval/corpus/indexer.hpp"
#include "retrieval/hooks/hooks.hpp"
#include "retrieval/query/answer.hpp"
#include "retrieval/query/query_cache.hpp"
#include "retrieval/query/query_plan.hpp"
#include "retrieval/query/ranking.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/reader.hpp"

namespace muniment::retrieval {

class Retriever {
 public:
  struct Options {
    std::size_t cache_bytes_max = 64 << 20;
    std::size_t rankings_bytes_max = 8 << 20;
    HookOptions hooks{};
  };
  Retriever(Options options, SearchClient& search, DocumentFollower& documents, Indexer& indexer,
            store::ArtifactFiles& files)
      : search_(search),
        documents_(documents),
        indexer_(indexer),
        files_(files),
        hooks_(options.hooks),
        cache_(options.cache_bytes_max),
        rankings_(options.rankings_bytes_max) {}

  // Everything that the answer depends on; equal keys have equal answers. Errors: invalid_argument (profile, asof,
  // cursor, a hook that is not configured); unavailable for a time whose events are not completely known yet.
  using Plan = QueryPlan;
  Result<Plan> plan(const Question& question, const Scope& scope, store::Reader& reader, const store::Tail& tail,
                    Deadline deadline) const;

  Result<Answer> answer(const Plan& plan, store::Reader& reader, Deadline deadline) const;

  // The cache keys of this plan's answers, best first: that of all lanes and, while some are behind, that of the
  // others. A cached answer therefore never lacks a lane that could answer now.
  std::vector<std::string> keys(const Plan& plan, Deadline deadline) const;
  // The cache key of this answer.
  static std::string key_of(const Plan& plan, const Answer& answer);

  // Waits until the indexes include the event at `seq`. Errors: deadline_exceeded.
  Status wait_for(std::int64_t seq, Deadline deadline) const;

  BoundedCache<std::string>& cache() { return cache_; }

 private:
  struct Work;  // computes one answer
  SearchClient& search_;
  DocumentFollower& documents_;
  Indexer& indexer_;
  store::ArtifactFiles& files_;
  const Hooks hooks_;
  struct KeptRanking {
    std::vector<Ranked> ranked;
    std::vector<std::string> identities;  // identities of the lanes
  };
  BoundedCache<std::string> cache_;             // answers, as JSON
  mutable BoundedCache<KeptRanking> rankings_;  // rankings with a next page
  mutable std::atomic<Monotonic> waited_at_{};  // when a lane was last behind
};

}  // namespace muniment::retrieval
