// Computes the ranking of a plan (docs/retrieval.md, "Expansion and reranking"): probe, expand, search the lanes,
// rerank the best candidates, blend, and add feedback. Pages are cut from the ranking afterwards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "retrieval/engine/engine.hpp"
#include "retrieval/hooks/hooks.hpp"
#include "retrieval/plan/expansions.hpp"
#include "retrieval/query/passage_source.hpp"
#include "retrieval/query/query_plan.hpp"

namespace muniment::retrieval {

struct Ranked {
  Candidate candidate;  // ranked by its score
  std::string snippet;  // the part of its passage that a reranker chose; empty: none
};

// A record of the steps, for `explain`.
struct RankingNotes {
  struct Scored {
    ChunkId chunk = 0;
    std::size_t from = 0;  // its rank before, from 1
    double score = 0;      // 0…1
  };
  std::vector<double> probe;  // the scores of its hits
  bool probed = false, strong = false;
  std::int64_t probe_us = 0;
  std::string expanded_by;  // heuristic, hook; empty: not expanded
  Expansions expansions;
  std::int64_t expand_us = 0;
  std::string reranked_by;  // hook, http; empty: not reranked
  std::vector<Scored> reranked;
  std::int64_t rerank_us = 0;
};

struct Ranking {
  std::vector<Ranked> ranked;           // best first
  std::vector<LaneList> lists;          // with explain
  std::vector<std::string> identities;  // identities of the lanes
  std::vector<std::string> degraded;
  bool passing = false;              // as in LaneAnswer
  std::vector<std::string> waiting;  // as in LaneAnswer
  RankingNotes notes;
};

Result<Ranking> rank(const QueryPlan& plan, PassageSource& source, const Hooks& hooks);

// Returns the plan's query under a filter.
LaneQuery lane_query(const QueryPlan& plan, const Filter& filter);

void write_notes(json::Writer& out, const RankingNotes& notes);  // as members of an object

}  // namespace muniment::retrieval
