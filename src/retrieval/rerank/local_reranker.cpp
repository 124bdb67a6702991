// Reranks candidates by coverage and by their neighbours.
#include "retrieval/rerank/local_reranker.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "retrieval/lexical/terms.hpp"
#include "retrieval/lexical/words.hpp"

namespace muniment::retrieval {
namespace {

constexpr double coverage_share = .25;  // share in a score, before the neighbours' part
constexpr double neighbours_share = .4;
constexpr std::size_t neighbours_max = 10;

struct Term {
  std::uint32_t word = 0;
  double weight = 0;  // occurrences; then tf-idf of a vector of length 1
};
using Terms = std::vector<Term>;  // terms by word, without duplicates

// Limit for a query or a passage; the rest is ignored. A chunk has a few hundred words.
constexpr std::size_t words_max = 2'000;

// Numbers the stems of a text, as in the lexical lane, in the order of their first occurrence.
class Vocabulary {
 public:
  Terms terms_of(std::string_view text, std::string_view language) {
    Stemmer& stemmer = stemmers_.try_emplace(std::string(language), language).first->second;
    std::map<std::uint32_t, double> counts;
    for (const Word& word : words_of(text, words_max)) {
      if (word.kind == Word::Kind::whole) continue;
      for (std::string& stem : stemmer.stems_of(word)) {
        counts[numbers_.try_emplace(std::move(stem), static_cast<std::uint32_t>(numbers_.size())).first->second] += 1;
      }
    }
    Terms terms;
    for (const auto& [word, count] : counts) terms.push_back({word, count});
    return terms;
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  std::map<std::string, Stemmer, std::less<>> stemmers_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

std::vector<double> rarity_of(std::span<const Terms> passages, std::size_t words) {
  std::vector<double> holding(words, 0);
  for (const Terms& terms : passages) {
    for (const Term& term : terms) holding[term.word] += 1;
  }
  for (double& count : holding) count = std::log(1 + static_cast<double>(passages.size()) / (count + .5));
  return holding;
}

void weigh(Terms& terms, const std::vector<double>& rarity) {
  double square = 0;
  for (Term& term : terms) {
    term.weight = (1 + std::log(term.weight)) * rarity[term.word];
    square += term.weight * term.weight;
  }
  for (Term& term : terms) term.weight /= std::sqrt(square);
}

// Iterates over the words of both; calls `at` for each.
template <typename At>
void meet(const Terms& a, const Terms& b, const At& at) {
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (x->word == y->word)
      at(*x++, *y++);
    else
      x->word < y->word ? ++x : ++y;
  }
}

double coverage_of(const Terms& query, const Terms& passage, const std::vector<double>& rarity) {
  double held = 0, all = 0;
  for (const Term& term : query) all += rarity[term.word];
  meet(query, passage, [&](const Term& term, const Term&) { held += rarity[term.word]; });
  return all > 0 ? held / all : 0;
}

double cosine(const Terms& a, const Terms& b) {
  double sum = 0;
  meet(a, b, [&](const Term& x, const Term& y) { sum += x.weight * y.weight; });
  return sum;
}

// Returns the mean of the nearest candidates' scores, weighted by similarity; its own score if none is similar.
double neighbours_score(std::span<const double> near, std::span<const double> scores, std::size_t self) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (i != self) order.push_back(i);
  }
  const std::size_t kept = std::min(order.size(), neighbours_max);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [&](std::size_t a, std::size_t b) { return near[a] != near[b] ? near[a] > near[b] : a < b; });
  double sum = 0, weight = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    sum += near[order[i]] * scores[order[i]];
    weight += near[order[i]];
  }
  return weight > 0 ? sum / weight : scores[self];
}

}  // namespace

std::vector<double> rerank_locally(std::string_view query, std::span<const LocalCandidate> candidates) {
  Vocabulary vocabulary;
  std::vector<Terms> passages;
  std::map<std::string_view, Terms> asked;  // terms of the query, by the languages of the candidates
  for (const LocalCandidate& candidate : candidates) {
    passages.push_back(vocabulary.terms_of(candidate.text, candidate.language));
    if (!asked.contains(candidate.language)) asked[candidate.language] = vocabulary.terms_of(query, candidate.language);
  }
  const std::vector<double> rarity = rarity_of(passages, vocabulary.size());
  std::vector<double> scores;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    scores.push_back((1 - coverage_share) * candidates[i].score +
                     coverage_share * coverage_of(asked[candidates[i].language], passages[i], rarity));
  }
  for (Terms& terms : passages) weigh(terms, rarity);
  const std::size_t count = candidates.size();
  std::vector<double> near(count * count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j)
      near[i * count + j] = near[j * count + i] = cosine(passages[i], passages[j]);
  }
  std::vector<double> result;
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const double> row(near.data() + i * count, count);
    result.push_back((1 - neighbours_share) * scores[i] + neighbours_share * neighbours_score(row, scores, i));
  }
  return result;
}

}  // namespace muniment::retrieval
