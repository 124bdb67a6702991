// The query pipeline (docs/retrieval.md): parse the markup and plan (query_plan.hpp), rank (ranking.hpp), verify each
// hit against the chunk table and its bytes, and answer with cards.
//
// The answer is a function of what the plan's key writes down: query, mode, topK, group, filters, profile, helpers, scope,
// as_of and the positions of index and feedback. Equal inputs give equal answers, cached or not, alone or in a batch, as far
// as hooks answer equal questions equally.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "retrieval/card.hpp"
#include "retrieval/document_follower.hpp"
#include "retrieval/hooks/hooks.hpp"
#include "retrieval/indexer.hpp"
#include "retrieval/query_cache.hpp"
#include "retrieval/query_plan.hpp"
#include "retrieval/ranking.hpp"
#include "store/artifact_files.hpp"
#include "store/reader.hpp"

namespace muniment::retrieval {

struct Answer {
  std::vector<Card> cards;
  std::string cursor;                    // of the next page; empty: there is none
  std::string reason;                    // why there are no cards: no_match, unknown_corpus, filtered_out, index_behind, all_quarantined
  std::int64_t count = 0;                // of filtered_out and index_behind: how many
  std::vector<std::string> degraded;
  bool passing = false;                  // that will be over without a change that the plan's key shows: not to be cached
  std::vector<std::string> corpora;
  std::string profile;
  std::string plan_hash;
  std::int64_t watermark = 0;
  std::optional<std::int64_t> as_of;
  std::vector<std::string> lanes;        // their identities
  std::string explain;                   // JSON; empty: not asked for
};

class Retriever {
 public:
  struct Options {
    std::size_t cache_bytes_max = 64 << 20;
    std::size_t rankings_bytes_max = 8 << 20;
    HookOptions hooks{};
  };
  Retriever(Options options, SearchClient& search, DocumentFollower& documents, Indexer& indexer, store::ArtifactFiles& files)
      : search_(search), documents_(documents), indexer_(indexer), files_(files), hooks_(options.hooks),
        cache_(options.cache_bytes_max), rankings_(options.rankings_bytes_max) {}

  // What the answer is a function of; equal keys have equal answers. Errors: invalid_argument (markup, profile, cursor, a
  // hook that is not there).
  using Plan = QueryPlan;
  Result<Plan> plan(const Question& question, const Scope& scope, store::Reader& reader) const;

  Result<Answer> answer(const Plan& plan, store::Reader& reader, Deadline deadline) const;

  // Until the indexes hold the event at `seq`. Errors: deadline_exceeded.
  Status wait_for(std::int64_t seq, Deadline deadline) const;

  BoundedCache<std::string>& cache() { return cache_; }

 private:
  struct Work;   // one answer in the making
  SearchClient& search_;
  DocumentFollower& documents_;
  Indexer& indexer_;
  store::ArtifactFiles& files_;
  const Hooks hooks_;
  BoundedCache<std::string> cache_;                        // answers, as JSON
  mutable BoundedCache<std::vector<Ranked>> rankings_;  // of which a next page was promised
};

}  // namespace muniment::retrieval
