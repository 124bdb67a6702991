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
  std::string typed;               // the word, if it may be misspelt: letters only
  std::string next;                // the word after it: "sign" and "off" may stand for "signoff"
};

struct QueryTerms {
  std::vector<TermGroup> groups;                  // in the order of the query
  std::vector<std::vector<std::string>> phrases;  // words that must be adjacent and in order
  // Without phrases, the text as a phrase: it represents "to be or not to be", none of whose words scores.
  std::vector<std::vector<std::string>> whole_text;
};

// The languages of an index.
struct Languages {
  std::vector<std::string> stemmed;  // the languages in which a query's words are stemmed
  std::uint32_t usual = 0;  // the languages of a query that does not show its own, as bits (function_words.hpp)
};

using Stemmers = std::map<std::string, Stemmer, std::less<>>;

// A function word of any language that the query may be in does not score. The query shows its language if it has more
// function words of it than of any other, and at least two; otherwise it may be in every usual language.
QueryTerms query_terms(const LexicalQuery& query, const Languages& languages, Stemmers& stemmers);

// Returns the forms of a word, given as text, in each of the languages.
std::vector<std::string> forms_of(const Word& word, const std::vector<std::string>& languages, Stemmers& stemmers);

}  // namespace muniment::retrieval
