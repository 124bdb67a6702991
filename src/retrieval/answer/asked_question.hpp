// A question of the method ask: its context pack, the draft of its answer, its reply, and its record in a manifest.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "retrieval/answer/model_drafter.hpp"
#include "retrieval/query/pack_building.hpp"

namespace muniment::retrieval {

struct AskedQuestion {
  Uuid id;
  std::string question;
  PackBuilding building;
  std::string drafter;
  std::string model;        // of the drafter; empty: none
  std::string prompt_hash;  // of what the drafter read
  Draft draft;
  Signals signals;
  double confidence = 0;
};

// Reads the parameters of ask; `common` has those that it shares with evidence.retrieve. Errors: invalid_argument,
// too_large.
Result<AskedQuestion> asked_question_of(const json::Value& params, Question common, Time now);

// Drafts from the pack with the model; without one, or if it fails, with sentences of the passages. The confidence
// depends on the passages alone.
Status draft_answer(AskedQuestion& asked, const ModelDrafter* model, Deadline deadline);

// The sentences, each with the numbers of its citations in provenance.local.
std::string answer_text(const AskedQuestion& asked);

// Returns the reason of an empty answer: the retrieval's, or no_match if no sentence of its passages answers.
std::string reason_of(const AskedQuestion& asked);

// The part of a reply that does not come from the passages.
struct OtherAnswer {
  std::string text;                          // follows the answer
  double carried = 0;                        // part of its sentences that a passage carries
  std::function<void(json::Writer&)> write;  // writes the members of `provenance` after `local`; empty: no reply
};
// Writes the reply except for its last members, which its record supplies.
json::Writer answer_reply(const AskedQuestion& asked, std::string_view logs_ref, const OtherAnswer& other = {});

// Writes the members of the answer's record: the answer, its reason and its citations.
void write_answer(json::Writer& out, const AskedQuestion& asked);
std::string answer_manifest(const AskedQuestion& asked);

}  // namespace muniment::retrieval
