// How a sentence says something: as a fact, or as a plan, a condition, a guess, somebody else's word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "evidence/run_judge/sentences.hpp"

namespace muniment::evidence::run_judge {

enum class Mood : std::uint8_t {
  asserted,
  denied,  // "the tests do not pass"
  open,    // question, condition, future, wish, guess, another's word, an earlier state, a part of it
};

// The mood of the words [begin, end) of a sentence's masked text. `own_negation`: a negation among these words is a
// part of what is claimed, as in "no lint errors".
Mood mood_of(const Sentence& sentence, std::size_t begin, std::size_t end, bool own_negation);

}  // namespace muniment::evidence::run_judge
