// The terms of the lexical index:
//
//   word       every word and character with its position: for phrases; does not affect scores
//   Z stem     stems of words, with the language of the stemmer ("Zen:databas"), so that no stem of one language is
//   taken
//              for one of another; characters and pairs of them, and unstemmed words: used for scores
//   W whole    compounds with their separators removed, other forms of words, and runs of characters
//   C capitals function words in capitals: IT, US
//   L label    a label of its facts; a long one as H and its hash
//   G language counts the chunks of each language
//   B          ballast, in every chunk (terms.cpp)
//
// The prefixes are capitals, with which no folded word begins.
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
inline constexpr char capitals_prefix = 'C';
inline constexpr char language_prefix = 'G';
// Version of the rules in words.cpp and terms.cpp: an index of another version is rebuilt.
inline constexpr std::string_view term_rules = "lexical/3";

// Added to every chunk's length (terms.cpp).
inline constexpr std::uint32_t ballast_words = 20;

// A snowball stemmer by ISO 639-1 code; for "none" and languages without a stemmer, words remain unchanged.
class Stemmer {
 public:
  explicit Stemmer(std::string_view language);
  Stemmer(Stemmer&&) noexcept;
  ~Stemmer();

  // Returns the stems by which a word is indexed, with their language and without accents: two if its accents change
  // the stem, since users omit accents; none for a function word of the language, and for a run of characters.
  std::vector<std::string> stems_of(const Word& word);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ChunkTerms {
  std::map<std::string, std::uint32_t, std::less<>> scored;   // term → occurrences
  std::vector<std::pair<std::string, std::uint32_t>> placed;  // word, position
};

ChunkTerms terms_of(const LexicalChunk& chunk, Stemmer& stemmer);

std::string label_term(std::string_view label);
std::string language_term(std::string_view language);

// Encodes an integer as bytes with the same order.
std::string sortable(std::int64_t number);
std::int64_t number_of(std::string_view sortable);  // 0 for invalid bytes

}  // namespace muniment::retrieval
