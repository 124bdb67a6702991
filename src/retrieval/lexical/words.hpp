// Splits a text into the words that the lexical lane indexes and searches, by the same rules for documents and queries.
// Pure; a text contains no operators.
// - Letters are lower-cased and accents folded ("Häuser" is found by "hauser").
// - Compounds are split and also kept whole: get_user_name, getUserName, time-sharing, std::vector,
//   src/base/files/file.hpp, a.b.c. The whole is the concatenation of its parts, equal for all spellings of a name.
// - Scripts without spaces (Han, kana, Hangul, Thai …) become characters and pairs of characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

struct Word {
  enum class Kind : std::uint8_t {
    plain,      // a word, or a part of a compound; has a position and a stem
    whole,      // a compound without its separators; no position
    character,  // in a script without spaces; has a position
    pair,       // two adjacent characters; no position
  };
  Kind kind = Kind::plain;
  std::uint32_t position = 0;  // from 1; a whole or a pair has the position of its first part
  std::string lower;           // lower case with accents, for a stemmer; empty if equal to `text`
  std::string text;            // lower case, accents folded

  const std::string& for_stemmer() const { return lower.empty() ? text : lower; }
};

// Returns the words of a text in order, up to `words_max` positions. Invalid UTF-8 separates words.
std::vector<Word> words_of(std::string_view text, std::size_t words_max);

// Returns the text in lower case without accents.
std::string folded(std::string_view text);

}  // namespace muniment::retrieval
