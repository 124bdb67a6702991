// The terms of a query for the lexical index, in groups. The terms of a group are forms of one word (its stem in each
// language of the index, its spelling as one word) and count as one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "retrieval/lexical/lexical_index.hpp"
#include "retrieval/lexical/terms.hpp"

namespace muniment::retrieval {

struct TermGroup {
  std::vector<std::string> forms;  // not empty, without duplicates
  std::uint32_t count = 1;         // occurrences in the query
};

struct QueryTerms {
  std::vector<TermGroup> groups;                  // in the order of the query
  std::vector<std::vector<std::string>> phrases;  // words that must be adjacent and in order
  // Without phrases, the text as a phrase: it represents "to be or not to be", none of whose words scores.
  std::vector<std::vector<std::string>> whole_text;
};

// `languages`: the languages in which words are stemmed if the query names none.
QueryTerms query_terms(const LexicalQuery& query, const std::vector<std::string>& languages,
                       std::map<std::string, Stemmer, std::less<>>& stemmers);

}  // namespace muniment::retrieval
