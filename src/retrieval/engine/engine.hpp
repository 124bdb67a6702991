// The search engine: both indexes and the embedders behind one interface. It runs in the search child (child/), and
// within the process in tests and benchmarks. It knows chunks by id, but no documents or runs.
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
class LexicalIndex;
class VectorLanes;

// A chunk to be indexed. Its text is stored only as postings and vectors.
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
  std::int64_t from_seq = -1;  // first position, if set: an index that is behind it refuses the batch
};

enum class Mode : std::uint8_t { hybrid, lexical, vector };

struct LaneQuery {
  std::string text;
  std::vector<std::string> phrases;
  std::vector<std::string> lexical_expansions;
  std::vector<std::string> vector_expansions;
  std::vector<std::string> corpora;  // the corpora that the vector lane searches
  Mode mode = Mode::hybrid;
  Filter filter;
  std::size_t k = 10;      // candidates after fusion
  std::size_t shown = 10;  // number that is shown at once: if the lexical lane finds fewer, it also matches typos
  std::string profile;     // a name of plan/profile.hpp
  bool exact = false;
  bool explain = false;
  bool only_lanes = false;  // does not search; returns the lanes that could answer, and those that are behind
};

struct LaneList {
  std::string lane;   // lexical, hash, lsa, encoder, http
  std::string query;  // the expansion; the original query has weight 2
  bool original = true;
  double weight = 1;  // weight of the lane for this query
  std::vector<Hit> hits;
  std::int64_t duration_us = 0;
};

struct Candidate {
  ChunkId chunk = 0;
  double score = 0;                                   // fused (and reranked locally, if the profile does)
  std::vector<std::pair<std::string, double>> lanes;  // raw score of each lane that found it
  int best_rank = 0;                                  // from 1
  double confidence = 0;                              // 0…1: a monotone map of the fused score
};

struct LaneAnswer {
  std::vector<Candidate> candidates;  // by score, ties by best rank, then by id
  std::vector<LaneList> lists;        // with explain
  std::vector<std::string>
      degraded;          // "encoder: bge-small-en-v1.5 is not installed", "lsa: behind (notes at 18 of 20)" …
  bool passing = false;  // some of `degraded` is temporary: the same query soon has another answer
  std::vector<std::string>
      waiting;  // lanes in `degraded` that were skipped because they are behind, sorted; not included in `passing`
  std::vector<std::string> identities;  // identities of the lanes that were used
  std::int64_t watermark = 0;           // next_seq up to which all lanes have indexed
  std::int64_t unfiltered = 0;          // if nothing was found: matches without the filter
};

struct EngineModelStatus {
  std::string corpus;
  std::string identity;
  bool filled = false;  // false: it waits for `embed_again`, and the previous model still answers
};

struct EngineStatus {
  std::int64_t lexical_next_seq = 0;
  std::int64_t vector_next_seq = 0;  // after a start, also of the slow embedder, whose queue is lost with the process
  std::int64_t chunks = 0;
  std::vector<std::string> degraded;  // parts that it lacks for its lifetime
  std::vector<std::string> absent;    // the subset that was never installed
  std::vector<std::string>
      behind;                // "encoder: behind (40 chunks wait, 2.5 s)": lanes that queries go without at present
  std::int64_t waiting = 0;  // number of chunks that these lanes have not embedded
  std::vector<std::string> rebuilt;  // indexes that were found damaged at the start and emptied
  std::vector<EngineModelStatus> models;
};

// A trained model of a corpus, as recorded in the log.
struct EngineModel {
  std::string corpus;
  std::string bytes;
};

class Engine {
 public:
  struct Options {
    std::string folder;                  // contains lexical/ and vector/
    std::string models_folder;           // of sentence encoders; empty: no encoder is used
    bool empty_first = false;            // discards both indexes, because reading them crashed a process
    std::string remote_missing{};        // the reason for which there is no `remote`, if one is configured
    std::shared_ptr<Embedder> remote{};  // embedder of a server, for an additional lane; null: no such lane
  };
  static Result<std::unique_ptr<Engine>> open(const Options& options);
  // An engine over indexes that its owner opened, and rebuilds if they are damaged.
  static std::unique_ptr<Engine> over(std::unique_ptr<LexicalIndex> lexical, std::unique_ptr<VectorLanes> vectors);
  virtual ~Engine() = default;

  // Applies a batch; one writer. An index that already has some or all of it changes only what is missing. Errors:
  // invalid_argument; conflict for a gap (from_seq); corrupt: open the engine again, which empties what is damaged.
  virtual Status index(const EngineBatch& batch) = 0;  // durable on return
  // Sets the next model of a corpus. It is used once its vectors are complete: `embed_again` brings the texts of all
  // chunks in parts, the last one with `last`, in order with `index`. Until then the previous model answers.
  virtual Status set_model(const EngineModel& model) = 0;
  virtual Status embed_again(const std::string& corpus, const std::vector<EngineChunk>& chunks, bool last) = 0;

  // Any thread; each searching thread has its own `Searcher`.
  class Searcher {
   public:
    virtual ~Searcher() = default;
    virtual Result<LaneAnswer> search(const LaneQuery& query) = 0;
  };
  virtual Result<std::unique_ptr<Searcher>> searcher() = 0;
  virtual EngineStatus status() const = 0;
};

}  // namespace muniment::retrieval
