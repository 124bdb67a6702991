// The context pack of a request: its questions, candidates and passages, and the record of them in a manifest. Shared
// by context.build and ask.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "gateway/call.hpp"
#include "retrieval/answer/confidence.hpp"
#include "retrieval/answer/drafter.hpp"
#include "retrieval/query/pack.hpp"
#include "retrieval/query/retriever.hpp"
#include "store/append/rows.hpp"

namespace muniment::gateway::methods {

struct PackBuilding {
  std::vector<retrieval::Question> questions;
  std::string_view left_out_corpus;  // not searched; empty: none
  std::vector<retrieval::Passage> candidates;
  std::vector<std::string> degraded;
  std::vector<std::string> unverified;
  std::string reason;  // reason for no candidates, from the first query
  std::int64_t count = 0;
  std::int64_t indexed = 0;  // passages in the indexes
  std::int64_t expired = 0;  // documents that match and have expired
  std::string profile;
  std::string plan_hash;  // plan hash of the last query
  std::int64_t watermark = 0;
  std::optional<std::int64_t> as_of;
  retrieval::Budget budget;
  retrieval::Pack pack;
  std::optional<double> confidence;  // probability that the best passages hold the answer; not for several questions
};

// Returns the run that run_id names, which must accept events; without run_id, _log.
Result<std::shared_ptr<store::Run>> run_of_pack(Call& call);

// Runs every query and fills in all members except the pack.
Status find_candidates(Call& call, PackBuilding& building);

// Returns the question's text without markup: "in:notes" selects a corpus and is no word of it.
std::string words_of_question(const std::string& question);

// Returns the first passages of the pack, at most `passages`. The views belong to the building.
std::vector<retrieval::AnswerSource> sources_of(const PackBuilding& building, std::size_t passages);

// An answer with sentences of the passages, and the probability that the passages hold the answer.
struct JudgedPack {
  retrieval::Draft draft;
  retrieval::Signals signals;
  double confidence = 0;
};
Result<JudgedPack> judge_passages(const PackBuilding& building, const retrieval::DraftRequest& request,
                                  Deadline deadline);

// Members of the manifest: the questions, the budget, and the selection with its reasons. Lists the excluded passages
// as far as they fit.
void write_questions(json::Writer& out, const PackBuilding& building,
                     std::size_t bytes_max = limits::pack_logged_query_bytes_max);
void write_budget(json::Writer& out, const PackBuilding& building);
void write_left_out(json::Writer& out, const PackBuilding& building, const retrieval::LeftOut& item);
void write_selection(json::Writer& out, const PackBuilding& building);

// Returns the append of the manifest and of the event that names it, in one commit; without `finish`.
PendingAppend record_pack(Call& call, const std::shared_ptr<store::Run>& run, const store::ManifestRow& manifest,
                          std::string_view type, std::string body);

}  // namespace muniment::gateway::methods
