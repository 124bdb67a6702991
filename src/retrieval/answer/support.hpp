// Holds a sentence of a draft against a passage: does the passage carry it?
#pragma once

#include <optional>
#include <string_view>

#include "retrieval/answer/drafter.hpp"

namespace muniment::retrieval {

// Returns the sentence of the passage that has most of the claim's words, if the passage with its title and heading has
// at least 70 % of them and every number of the claim; otherwise nullopt. A comparison of words: it does not detect a
// negation, or words that the claim combines in another way.
std::optional<Span> carried_by(std::string_view claim, const AnswerSource& source);

}  // namespace muniment::retrieval
