// Conditions on a match that a pattern cannot express: check digits, known country codes, randomness.
#pragma once

#include <cstddef>
#include <string_view>

#include "bridge/rule.hpp"
#include "bridge/text_view.hpp"

namespace muniment::bridge {

// Shannon entropy of the bytes, in bits per byte.
double entropy(std::string_view text);

// Returns whether the characters are not those of words: letters that rarely follow each other, or many digits between
// letters.
bool is_random(std::string_view text);

// Checks the conditions that the tags of the rule name. It may shorten the match to the part that is valid.
bool passes_checks(const Rule& rule, const TextView& view, Span& match);

// Returns the end of the body of a private key whose header ends at `begin`, and whether its last line is missing;
// `begin` if what follows is no key. With `any`, every text up to the last line is a body.
std::size_t end_of_key(std::string_view text, std::size_t begin, bool any, bool& open);

}  // namespace muniment::bridge
