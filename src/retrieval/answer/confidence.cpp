// Computes the confidence of answers.
#include "retrieval/answer/confidence.hpp"

#include <algorithm>
#include <cmath>

namespace muniment::retrieval {
namespace {

// Fitted by `scripts/bench researcher calibration`.
constexpr double signals_bias = -5.527;
constexpr std::array<double, signal_count> signal_weights = {2.487, .415, 2.045, -.332};

constexpr std::size_t spread_candidates = 10;
// The constants were fitted on indexes of more than 600 passages; among fewer than 4, all words are frequent.
constexpr double passages_min = 4;
constexpr double passages_usual = 600;

// The weight of a word that one of so many passages has (lexical/word_match.cpp).
double largest_rarity(double passages) { return std::log((passages - .5) / 1.5); }

double scale_of(std::int64_t indexed) {
  const double passages = std::clamp(static_cast<double>(indexed), passages_min, passages_usual);
  return largest_rarity(passages_usual) / largest_rarity(passages);
}

}  // namespace

std::array<double, signal_count> values_of(const Signals& signals) {
  return {signals.coverage, signals.spread, signals.lexical, signals.words};
}

Signals signals_of(std::span<const RankedScore> candidates, std::int64_t indexed) {
  Signals signals;
  if (candidates.empty()) return signals;
  signals.spread = candidates.front().score;
  if (const std::size_t end = std::min(candidates.size(), spread_candidates); end > 1) {
    double sum = 0;
    for (std::size_t i = 1; i < end; ++i) sum += candidates[i].score;
    signals.spread -= sum / static_cast<double>(end - 1);
  }
  double best = 0;
  for (const RankedScore& candidate : candidates) {
    for (const auto& [lane, score] : candidate.lanes) {
      if (lane == "lexical") best = std::max(best, score);
    }
  }
  signals.lexical = std::log1p(best * scale_of(indexed));
  return signals;
}

double answer_confidence(const Signals& signals) {
  const std::array<double, signal_count> values = values_of(signals);
  double sum = signals_bias;
  for (std::size_t i = 0; i < signal_count; ++i) sum += signal_weights[i] * values[i];
  return 1 / (1 + std::exp(-sum));
}

}  // namespace muniment::retrieval
