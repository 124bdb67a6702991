// From text to the words that the lexical lane indexes and asks for: the same rules for documents and
// for queries, or nothing would be found. Pure; nothing in a text is an operator.
//
// - Letters are lower-cased; accents are folded away ("Häuser" is found by "hauser").
// - Compounds are split and kept whole: get_user_name, getUserName, time-sharing, std::vector,
//   src/base/files/file.hpp, a.b.c. The whole is its parts run together, so that all spellings of a name meet.
// - Scripts without spaces between words (Han, kana, Hangul, Thai …) become characters and pairs of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

struct Word {
  enum class Kind : std::uint8_t {
    plain,      // a word, or a part of a compound; has a position and a stem
    whole,      // a compound with its separators removed; no position
    character,  // of a script without spaces; has a position
    pair,       // two neighbours of them; no position
  };
  Kind kind = Kind::plain;
  std::uint32_t position = 0;  // from 1; a whole or a pair has that of its first part
  std::string lower;           // lower case, accents kept: what a stemmer wants; empty where it is the same
  std::string text;            // lower case, accents folded

  const std::string& for_stemmer() const { return lower.empty() ? text : lower; }
};

// The words of a text in their order, at most `words_max` positions. Bytes that are not UTF-8 separate words.
std::vector<Word> words_of(std::string_view text, std::size_t words_max);

// Lower case without accents.
std::string folded(std::string_view text);

}  // namespace muniment::retrieval
