// The table of general language: the words that a question may hold (general_language.txt).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muniment::bridge {

enum class WordClass { common, rare, term };

struct GeneralWord {
  WordClass rank;
  std::string text;  // in its usual case
  std::string base;  // in lower case, without a regular ending; of a compound, the parts with a space between them
};

// Looks up a word or a compound of words ("load-balancing"), also an inflected form of a word of the table. A term that
// is also a word, such as REST, must be written in its usual case. A compound is as rare as its rarest part.
std::optional<GeneralWord> general_word(std::string_view word);

}  // namespace muniment::bridge
