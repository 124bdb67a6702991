// The terms of the lexical index. What a chunk is found by:
//
//   word       every word and character where it stands: for phrases; adds nothing to a score
//   Z stem     stems of words, and characters and pairs of them: what a query is scored by
//   W whole    compounds with their separators removed
//   L label    of its facts; too long a one as H and its hash
//   G language counts the chunks of each language
//   B          ballast, in every chunk (terms.cpp)
//
// The prefixes are capitals, which no folded word begins with.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "retrieval/lexical/lexical_index.hpp"
#include "retrieval/lexical/words.hpp"

namespace muniment::retrieval {

inline constexpr char stem_prefix = 'Z';
inline constexpr char whole_prefix = 'W';
inline constexpr char language_prefix = 'G';
// The rules of words.cpp and terms.cpp: another version cannot read an index, which is then made anew.
inline constexpr std::string_view term_rules = "lexical/2";

// Every chunk's length has it on top (terms.cpp).
inline constexpr std::uint32_t ballast_words = 20;

// A snowball stemmer by ISO 639-1 code; for a language without one, and for "none", words stay as they are.
class Stemmer {
 public:
  explicit Stemmer(std::string_view language);
  Stemmer(Stemmer&&) noexcept;
  ~Stemmer();

  // The stems that a word is indexed by, without accents: two where its accents change how it is stemmed,
  // since people leave them out; none of a function word of the language.
  std::vector<std::string> stems_of(const Word& word);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ChunkTerms {
  std::map<std::string, std::uint32_t, std::less<>> scored;   // term → how often
  std::vector<std::pair<std::string, std::uint32_t>> placed;  // word, position
};

ChunkTerms terms_of(const LexicalChunk& chunk, Stemmer& stemmer);

std::string label_term(std::string_view label);
std::string language_term(std::string_view language);

// An integer as bytes that sort like it.
std::string sortable(std::int64_t number);
std::int64_t number_of(std::string_view sortable);  // 0 for what is none

}  // namespace muniment::retrieval
