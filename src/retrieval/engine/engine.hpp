// The search engine: both indexes and the embedders behind one door. It lives in the search child
// (child/), and in tests and benchmarks in process. It knows chunks by id, never documents or runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "retrieval/facts.hpp"
#include "retrieval/plan/profile.hpp"

namespace muniment::retrieval {

class Embedder;

// A chunk to be indexed; its text is given once and not kept but as postings and vectors.
struct EngineChunk {
  ChunkId id = 0;
  std::string corpus;
  std::string text;
  std::string title;
  std::string heading;
  std::string language;
  Facts facts;
};

struct EngineBatch {
  std::int64_t next_seq = 0;
  std::vector<EngineChunk> add;
  std::vector<std::pair<ChunkId, std::int64_t>> close;  // id, valid_to
  std::vector<ChunkId> remove;
  std::int64_t from_seq = -1;  // where it begins, if said: an index that is behind that refuses it
};

enum class Mode : std::uint8_t { hybrid, lexical, vector };

struct LaneQuery {
  std::string text;
  std::vector<std::string> phrases;
  std::vector<std::string> lexical_expansions;
  std::vector<std::string> vector_expansions;
  std::vector<std::string> corpora;  // whose spaces the vector lane looks in
  Mode mode = Mode::hybrid;
  Filter filter;
  std::size_t k = 10;      // candidates wanted after fusion
  std::size_t shown = 10;  // of which so many are shown at once: fewer lexical hits ask the lane for typos too
  std::string profile;     // a name of plan/profile.hpp
  bool exact = false;
  bool explain = false;
  bool only_lanes = false;  // nothing is looked for: which lanes could answer, and which are behind
};

struct LaneList {
  std::string lane;   // lexical, hash, lsa, use-lite, http
  std::string query;  // which expansion; the original query's has weight 2
  bool original = true;
  double weight = 1;  // of the lane, in the profile
  std::vector<Hit> hits;
  std::int64_t duration_us = 0;
};

struct Candidate {
  ChunkId chunk = 0;
  double score = 0;                                   // fused (and reranked locally, where the profile does)
  std::vector<std::pair<std::string, double>> lanes;  // raw score of each lane that found it
  int best_rank = 0;                                  // from 1
  double confidence = 0;                              // 0…1: a monotone map of the fused score
};

struct LaneAnswer {
  std::vector<Candidate> candidates;  // by score, ties by best rank, then by id
  std::vector<LaneList> lists;        // where explain
  std::vector<std::string> degraded;  // "use-lite: not installed", "lsa: behind (notes at 18 of 20)" …
  bool passing = false;               // degraded by what will pass: the same query has another answer soon
  std::vector<std::string>
      waiting;  // lanes that were left out because they are behind, sorted: of `degraded`, and not `passing`
  std::vector<std::string> identities;  // of the lanes that joined
  std::int64_t watermark = 0;           // next_seq up to which all lanes have indexed
  std::int64_t unfiltered = 0;          // where nothing was found: how many match but for the filter
};

struct EngineModelStatus {
  std::string corpus;
  std::string identity;
  bool filled = false;  // false: it waits for `embed_again`, and the one before it still answers
};

struct EngineStatus {
  std::int64_t lexical_next_seq = 0;
  std::int64_t vector_next_seq = 0;  // after a start, of the slow embedder too: its queue is gone with the process
  std::int64_t chunks = 0;
  std::vector<std::string> degraded;  // what it works without for as long as it lives
  std::vector<std::string> absent;    // of it: what was never installed
  std::vector<std::string> rebuilt;   // indexes that were found damaged at the start and emptied
  std::vector<EngineModelStatus> models;
};

// A corpus' trained model, as the log has it.
struct EngineModel {
  std::string corpus;
  std::string bytes;
};

class Engine {
 public:
  struct Options {
    std::string folder;                  // lexical/ and vector/ below it
    std::string use_lite_folder;         // empty or missing: degraded
    bool empty_first = false;            // both indexes are thrown away: they crashed whoever read them
    std::string remote_missing{};        // why there is no `remote`, where there should be one
    std::shared_ptr<Embedder> remote{};  // of a server, for a lane more; null: there is no such lane
  };
  static Result<std::unique_ptr<Engine>> open(const Options& options);
  virtual ~Engine() = default;

  // One writer. A batch of which an index has some already, or all, changes there only what is missing. Errors:
  // invalid_argument; conflict for a gap (from_seq); corrupt: open the engine again, which empties what is damaged.
  virtual Status index(const EngineBatch& batch) = 0;  // durable when it returns
  // The model of a corpus from now on, once its vectors are there: `embed_again` brings the texts of all its chunks,
  // in parts, the last one with `last`, in order with `index`. Until then the one before it answers.
  virtual Status set_model(const EngineModel& model) = 0;
  virtual Status embed_again(const std::string& corpus, const std::vector<EngineChunk>& chunks, bool last) = 0;

  // Any thread; each thread that searches has its own `Searcher`.
  class Searcher {
   public:
    virtual ~Searcher() = default;
    virtual Result<LaneAnswer> search(const LaneQuery& query) = 0;
  };
  virtual Result<std::unique_ptr<Searcher>> searcher() = 0;
  virtual EngineStatus status() const = 0;
};

}  // namespace muniment::retrieval
