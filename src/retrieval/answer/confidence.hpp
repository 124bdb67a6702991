// The probability that a context pack has the answer to its question, from the scores of the retrieval alone: a
// logistic function of signals that need no model. docs/retrieval.md ("Answers") says how it was calibrated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muniment::retrieval {

// A candidate of the retrieval, best first.
struct RankedScore {
  double score = 0;                                       // fused
  std::span<const std::pair<std::string, double>> lanes;  // raw score of each lane that found it
};

struct Signals {
  double coverage = 0;  // part of the question's words, by weight, that the best sentence has
  double spread = 0;    // lead of the best candidate's score over the mean of the following ones
  double lexical = 0;   // natural logarithm of 1 + the best BM25 score, made independent of the size of the index
  double words = 0;     // natural logarithm of 1 + the number of the question's words
};
inline constexpr std::size_t signal_count = 4;
inline constexpr std::array<std::string_view, signal_count> signal_names = {"coverage", "spread", "lexical", "words"};
std::array<double, signal_count> values_of(const Signals& signals);  // in the order of the names

// Fills in what follows from the candidates and from the number of passages in the index: spread, lexical. The weight
// of the rarest word grows with the number of passages, so that BM25 scores of few passages are low however well they
// match.
Signals signals_of(std::span<const RankedScore> candidates, std::int64_t indexed);

// Returns 0…1. An answer without a sentence has no confidence, whatever its signals.
double answer_confidence(const Signals& signals);

}  // namespace muniment::retrieval
