// The context pack of a request: its questions, candidates and passages, its reply, and its record in a manifest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "retrieval/answer/confidence.hpp"
#include "retrieval/answer/drafter.hpp"
#include "retrieval/query/answer.hpp"
#include "retrieval/query/pack.hpp"

namespace muniment::retrieval {

struct PackBuilding {
  std::vector<Question> questions;
  std::string_view left_out_corpus;  // not searched; empty: none
  std::vector<Passage> candidates;
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
  Budget budget;
  Pack pack;
  std::optional<double> confidence;  // probability that the best passages hold the answer; not for several questions
};

// Reads budget and questions from the parameters of context.build; `common` has the parameters that it shares with
// evidence.retrieve. Errors: invalid_argument.
Result<PackBuilding> pack_of(const json::Value& params, Question common);

// Fills in all members except the pack from the answers to the questions.
void take_answers(PackBuilding& building, std::vector<Answer> answers);

// Selects the passages and judges them. A pack below the requested confidence is emptied.
Status fill_pack(PackBuilding& building, const json::Value& params, Deadline deadline);

// Writes the reply of context.build except for its last members, which its commit supplies.
json::Writer pack_reply(const PackBuilding& building);

// Returns the question's text without markup: "in:notes" selects a corpus and is no word of it.
std::string words_of_question(const std::string& question);

// Returns the first passages of the pack, at most `passages`. The views belong to the building.
std::vector<AnswerSource> sources_of(const PackBuilding& building, std::size_t passages);

// An answer with sentences of the passages, and the probability that the passages hold the answer.
struct JudgedPack {
  Draft draft;
  Signals signals;
  double confidence = 0;
};
Result<JudgedPack> judge_passages(const PackBuilding& building, const DraftRequest& request, Deadline deadline);

// Members of the manifest: the questions, the budget, and the selection with its reasons. Lists the excluded passages
// as far as they fit.
void write_questions(json::Writer& out, const PackBuilding& building,
                     std::size_t bytes_max = limits::pack_logged_query_bytes_max);
void write_budget(json::Writer& out, const PackBuilding& building);
void write_left_out(json::Writer& out, const PackBuilding& building, const LeftOut& item);
void write_selection(json::Writer& out, const PackBuilding& building);

}  // namespace muniment::retrieval
