// The JSON messages to and from hooks (docs/retrieval.md, "Hooks"). Pure. A hook's answer is checked as a whole: one
// fault invalidates all of it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

struct ExpansionRequest {
  std::string_view query;
  std::size_t max_expansions = 0;            // for each kind
  std::string scope;                         // the corpus that is searched, as "ev://notes/"; empty: several corpora
  std::optional<std::string> after, before;  // times in RFC 3339
  std::optional<std::int64_t> as_of;         // a seq
};

struct ExpansionAnswer {
  std::vector<std::string> lexical, vector;  // without the query and without duplicates
  std::vector<std::string> warnings;
};

struct RerankCandidate {
  std::string key;
  std::string uri;      // the passage's pointer
  std::string snippet;  // part of its text
};

struct RerankAnswer {
  std::vector<std::optional<double>> scores;    // scores by candidate, 0…1 (see `into_unit_range`)
  std::map<std::size_t, std::string> snippets;  // snippets by candidate, not yet compared with the passage
  std::vector<std::string> warnings;
};

std::string expansion_request_json(const ExpansionRequest& request);
std::string rerank_request_json(std::string_view query, std::span<const RerankCandidate> candidates);

// Parses an answer. Errors: unavailable, with a text that can follow the hook's name.
Result<ExpansionAnswer> expansion_answer_of(std::string_view json, const ExpansionRequest& request);
Result<RerankAnswer> rerank_answer_of(std::string_view json, std::span<const RerankCandidate> candidates);

// Leaves scores that are all in 0…1 unchanged; otherwise maps each to 1 / (1 + e^−score), because values outside that
// range are the logits of a cross-encoder. The order of the scores is the same in both cases.
void into_unit_range(std::vector<std::optional<double>>& scores);

}  // namespace muniment::retrieval
