// Answers queries to the sample set: ranks its documents by the share of the query's words that they contain. It needs
// no index, child or state: the same query has the same answer in every daemon.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/query/card.hpp"

namespace muniment::retrieval {

inline constexpr std::string_view sample_lane = "sample-words/1";

// Returns all cards of the query, best first, then in the order of the documents. They contain every phrase and pass
// the filter.
std::vector<Card> sample_cards(std::string_view query, const std::vector<std::string>& phrases, const Filter& filter);

}  // namespace muniment::retrieval
