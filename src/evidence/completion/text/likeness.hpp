// Measures how closely a string of letters resembles a word, from the frequency of letter pairs and from adjacent keys.
#pragma once

#include <cstddef>
#include <string_view>

namespace muniment::evidence::completion {

// Sums over the words of a text.
struct Likeness {
  std::size_t letters = 0;  // letters of the words that were judged
  std::size_t mashed = 0;   // letters in words that look like keyboard mash
  std::size_t pairs = 0;
  std::size_t surprise = 0;  // the sum over pairs of -log2 P(second | first), rounded
};

inline constexpr std::size_t judged_word_letters_min = 4;

// `word` is in lower case; words with letters other than a-z are skipped.
void add_word(Likeness& likeness, std::string_view word);

// True if the text as a whole is mash.
bool is_mash(const Likeness& likeness);

}  // namespace muniment::evidence::completion
