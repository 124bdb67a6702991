// An answer to a query: cards, and what they depended on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "retrieval/query/card.hpp"
#include "retrieval/query/passage_source.hpp"
#include "retrieval/query/query_plan.hpp"
#include "retrieval/query/ranking.hpp"

namespace muniment::retrieval {

struct Answer {
  std::vector<Card> cards;
  std::string cursor;  // position of the next page; empty: last page
  // Reason for no cards: no_match, nothing_indexed, unknown_corpus, unknown_run, filtered_out, index_behind,
  // all_quarantined, expired, unverified
  std::string reason;
  std::int64_t count = 0;               // number for filtered_out, index_behind, all_quarantined, expired, unverified
  std::int64_t expired = 0;             // documents that match and have expired
  std::vector<std::string> unverified;  // pointers of hits whose bytes differ from the log, also when read again
  std::vector<std::string> degraded;
  bool passing = false;              // temporary, without a change that its key shows: must not be cached
  std::vector<std::string> waiting;  // lanes that were left out because they are behind, sorted
  std::vector<std::string> corpora;
  std::vector<std::string> filters;  // filters in the query's markup, as understood
  std::string profile;
  std::string plan_hash;
  std::int64_t watermark = 0;
  std::int64_t indexed = 0;  // current passages of all corpora
  std::optional<std::int64_t> as_of;
  std::vector<std::string> lanes;  // their identities
  std::string explain;             // JSON; empty: not requested
};

// Adds the cards of one page of a ranking to the answer: verifies each hit, puts newer facts first, and adds the
// passages that follow questions. Returns the rank of the next page; nullopt: last page.
Result<std::optional<std::size_t>> add_cards(Answer& answer, const QueryPlan& plan, const std::vector<Ranked>& ranked,
                                             PassageSource& source);

// Sets the reason for an answer without cards. `has_documents`: whether there are any that it could have been found in.
Status add_reason(Answer& answer, const QueryPlan& plan, PassageSource& source,
                  const std::function<Result<bool>()>& has_documents);

// Returns the plan and its ranking as JSON.
std::string explain_json(const QueryPlan& plan, const Ranking& ranking);

// One entry of `results` of evidence.retrieve.
std::string result_json(const std::string& query, const Answer& answer);

// Reads the parameters that apply to all queries of a request: mode, topK, group, profile, filters, cursor, explain,
// exact. Errors: invalid_argument.
Result<Question> question_of(const json::Value& params);

}  // namespace muniment::retrieval
