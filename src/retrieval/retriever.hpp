// The query pipeline (docs/retrieval.md): parse the markup, plan, ask the engine's lanes, blend, verify each hit
// against the chunk table and its bytes, and answer with cards.
//
// The answer is a function of what `key_of` writes down: query, mode, topK, group, filters, profile, scope, as_of
// and the positions of index and feedback. Equal inputs give equal answers, cached or not, alone or in a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "retrieval/card.hpp"
#include "retrieval/document_follower.hpp"
#include "retrieval/engine.hpp"
#include "retrieval/indexer.hpp"
#include "retrieval/plan/markup.hpp"
#include "retrieval/plan/profile.hpp"
#include "retrieval/query_cache.hpp"
#include "store/artifact_files.hpp"
#include "store/reader.hpp"

namespace muniment::retrieval {

class SearchClient;

// Filters beside those in the query's markup: any of each list, but all of the tags.
struct Wishes {
  std::vector<std::string> types;
  std::vector<std::string> tags;
  std::vector<std::string> sources;
  std::vector<std::string> trust;        // empty: trusted and untrusted
  std::vector<std::string> documents;
  std::optional<Time> after;
  std::optional<Time> before;
};

struct Question {
  std::string text;
  std::vector<std::string> corpora;      // asked for by name; empty: all that may be seen
  Mode mode = Mode::hybrid;
  std::size_t top_k = 10;
  bool by_document = false;              // the best passage of each document
  std::string profile;
  Wishes wishes;
  std::optional<std::int64_t> as_of;
  std::string cursor;
  bool explain = false;
  bool exact = false;
};

// Who asks, and which corpora he may see.
struct Scope {
  std::string principal;
  std::vector<std::string> corpora;
};

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
  };
  Retriever(Options options, SearchClient& search, DocumentFollower& documents, Indexer& indexer, store::ArtifactFiles& files)
      : search_(search), documents_(documents), indexer_(indexer), files_(files), cache_(options.cache_bytes_max),
        rankings_(options.rankings_bytes_max) {}

  // What the answer is a function of, as text; equal keys have equal answers.
  // Errors: invalid_argument (markup, profile, cursor).
  struct Plan {
    Question question;
    Markup markup;
    const Profile* profile = nullptr;
    std::vector<std::string> corpora;      // that are looked in
    bool unknown_corpus = false;
    bool samples = false;                  // the sample set is asked, which is built in
    std::optional<std::int64_t> as_of;
    std::size_t from = 0;                  // the rank that the page begins at
    std::string ranking;                   // that the page is one of; empty: the first page
    std::int64_t watermark = 0;
    std::string hash;                      // of the plan but for positions
    std::string key;
  };
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
  BoundedCache<std::string> cache_;                        // answers, as JSON
  mutable BoundedCache<std::vector<Candidate>> rankings_;  // of which a next page was promised
};

}  // namespace muniment::retrieval
