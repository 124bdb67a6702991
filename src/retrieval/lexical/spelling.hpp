// The words at one edit from a word: a letter too many, missing, wrong, or exchanged with its neighbour.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

// Returns them without the word itself, without duplicates, sorted. A letter is missing or wrong within the alphabet of
// the word (Latin, Greek, Cyrillic); in other scripts only the other two edits are tried.
std::vector<std::string> words_at_one_edit(std::string_view word);

}  // namespace muniment::retrieval
