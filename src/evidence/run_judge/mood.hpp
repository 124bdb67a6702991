// The mood of a statement: a fact, a denial, or an open statement such as a plan, a condition, a guess or a quotation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "evidence/run_judge/sentences.hpp"

namespace muniment::evidence::run_judge {

enum class Mood : std::uint8_t {
  asserted,
  denied,  // "the tests do not pass"
  open,    // question, condition, future, wish, guess, quotation, earlier state, or a part of the subject
};

// Returns the mood of the words [begin, end) of a sentence's masked text. If `own_negation` is set, a negation among
// these words belongs to the claim, as in "no lint errors".
Mood mood_of(const Sentence& sentence, std::size_t begin, std::size_t end, bool own_negation);

}  // namespace muniment::evidence::run_judge
