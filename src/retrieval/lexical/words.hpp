// Splits a text into the words that the lexical lane indexes and searches, by the same rules for documents and queries.
// Pure; a text contains no operators.
// - Letters are lower-cased and accents folded ("Häuser" is found by "hauser").
// - Compounds are split and also kept whole: get_user_name, getUserName, time-sharing, std::vector,
//   src/base/files/file.hpp, a.b.c. The whole is the concatenation of its parts, equal for all spellings of a name.
// - Scripts without spaces (Han, kana, Hangul, Thai …) become characters and pairs of characters; a stretch of Han,
//   katakana or Hangul is also kept whole: 京都 is a word of 京都の紅葉, but not of 東京都.
// - A dotted number is also kept by its beginnings, and without its v: v2.1.0 is found by 2.1.0 and 2.1.
// - An elided article is a word: l'avion is "l" and "avion". Any other apostrophe may precede a suffix: istanbul'daki
// is
//   also "istanbul".
// - Vowel signs of Indic scripts are letters, not accents.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

struct Word {
  enum class Kind : std::uint8_t {
    plain,      // a word, or a part of a compound; has a position and a stem
    whole,      // a compound without its separators, or another form of a word; no position
    run,        // a stretch of characters of one script without spaces; no position
    character,  // in a script without spaces; has a position
    pair,       // two adjacent characters; no position
  };
  Kind kind = Kind::plain;
  std::uint32_t position = 0;  // from 1; a whole or a pair has the position of its first part
  std::string lower;           // lower case with accents, for a stemmer; empty if equal to `text`
  std::string text;            // lower case, accents folded
  bool capitals = false;       // written in capitals among words that are not: IT, US

  const std::string& for_stemmer() const { return lower.empty() ? text : lower; }
};

// Returns the words of a text in order, up to `words_max` positions. Invalid UTF-8 separates words.
std::vector<Word> words_of(std::string_view text, std::size_t words_max);

// Returns the text in lower case without accents.
std::string folded(std::string_view text);

}  // namespace muniment::retrieval
