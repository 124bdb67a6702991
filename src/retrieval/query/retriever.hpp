// The query pipeline (docs/retrieval.md): parse the markup and plan (query_plan.hpp), rank (ranking.hpp), verify each
// hit against the chunk table and its bytes, and answer with cards.
//
// The answer is a function of what the plan's key writes down: query, mode, topK, group, filters, profile, helpers,
// scope, as_of and the positions of index and feedback, and of the lanes that could be asked. Equal inputs give equal
// answers, cached or not, alone or in a batch, as far as hooks answer equal questions equally.
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
#include "retrieval/query/card.hpp"
#include "retrieval/query/query_cache.hpp"
#include "retrieval/query/query_plan.hpp"
#include "retrieval/query/ranking.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/reader.hpp"

namespace muniment::retrieval {

struct Answer {
  std::vector<Card> cards;
  std::string cursor;      // of the next page; empty: there is none
  std::string reason;      // why there are no cards: no_match, unknown_corpus, unknown_run, filtered_out, index_behind,
                           // all_quarantined, unverified
  std::int64_t count = 0;  // of filtered_out, index_behind, all_quarantined and unverified: how many
  std::vector<std::string> unverified;  // hits whose bytes are not those of the log, also at a second look; as pointers
  std::vector<std::string> degraded;
  bool passing = false;              // that will be over without a change that its key shows: not to be cached
  std::vector<std::string> waiting;  // lanes that were left out because they are behind, sorted
  std::vector<std::string> corpora;
  std::string profile;
  std::string plan_hash;
  std::int64_t watermark = 0;
  std::optional<std::int64_t> as_of;
  std::vector<std::string> lanes;  // their identities
  std::string explain;             // JSON; empty: not asked for
};

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

  // What the answer is a function of; equal keys have equal answers. Errors: invalid_argument (markup, profile, cursor,
  // a hook that is not there); unavailable, as `understand`.
  using Plan = QueryPlan;
  Result<Plan> plan(const Question& question, const Scope& scope, store::Reader& reader, const store::Tail& tail,
                    Deadline deadline) const;

  Result<Answer> answer(const Plan& plan, store::Reader& reader, Deadline deadline) const;

  // What answers to this plan are kept by, the best first: those of all lanes, and, as long as some are behind, those
  // of all others. So none is found that more lanes could give by now.
  std::vector<std::string> keys(const Plan& plan, Deadline deadline) const;
  // What this answer is kept by.
  static std::string key_of(const Plan& plan, const Answer& answer);

  // Until the indexes hold the event at `seq`. Errors: deadline_exceeded.
  Status wait_for(std::int64_t seq, Deadline deadline) const;

  BoundedCache<std::string>& cache() { return cache_; }

 private:
  struct Work;  // one answer in the making
  SearchClient& search_;
  DocumentFollower& documents_;
  Indexer& indexer_;
  store::ArtifactFiles& files_;
  const Hooks hooks_;
  struct KeptRanking {
    std::vector<Ranked> ranked;
    std::vector<std::string> identities;  // of the lanes
  };
  BoundedCache<std::string> cache_;             // answers, as JSON
  mutable BoundedCache<KeptRanking> rankings_;  // of which a next page was promised
  mutable std::atomic<Monotonic> waited_at_{};  // when a lane was seen behind last
};

}  // namespace muniment::retrieval
