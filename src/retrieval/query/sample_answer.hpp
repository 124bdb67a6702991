// The sample set's answers: its documents ranked by the share of the query's words that they hold. No index, no child,
// no state: the same query has the same answer in every daemon, whatever else is down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/query/card.hpp"

namespace muniment::retrieval {

inline constexpr std::string_view sample_lane = "sample-words/1";

// All cards of the query, best first, then in the documents' order. What is under every `phrase` and passes the filter.
std::vector<Card> sample_cards(std::string_view query, const std::vector<std::string>& phrases, const Filter& filter);

}  // namespace muniment::retrieval
