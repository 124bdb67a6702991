// Compares the words of questions with texts.
#include "retrieval/answer/question_words.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/limits.hpp"
#include "retrieval/query/function_words.hpp"

namespace muniment::retrieval {

QuestionWords::QuestionWords(std::string_view question, const std::vector<std::string_view>& languages) {
  Languages known;
  for (const std::string_view language : languages) {
    if (std::ranges::find(known.stemmed, language) == known.stemmed.end()) known.stemmed.emplace_back(language);
    known.usual |= language_bit(language);
  }
  if (known.stemmed.empty()) known.stemmed.emplace_back("none");
  groups_ = query_terms({std::string(question), {}, {}}, known, stemmers_).groups;
  if (groups_.size() > limits::query_terms_max) groups_.resize(limits::query_terms_max);
  weights_.assign(groups_.size(), groups_.empty() ? 0 : 1 / static_cast<double>(groups_.size()));
}

std::vector<bool> QuestionWords::found_in(std::string_view text, std::string_view language) {
  const auto stemmer = stemmers_.try_emplace(std::string(language), language).first;
  LexicalChunk chunk;
  chunk.text = text;
  chunk.language = language;
  const ChunkTerms terms = terms_of(chunk, stemmer->second);
  std::vector<bool> found;
  found.reserve(groups_.size());
  for (const TermGroup& group : groups_) {
    found.push_back(
        std::ranges::any_of(group.forms, [&](const std::string& form) { return terms.scored.contains(form); }));
  }
  return found;
}

void QuestionWords::weigh(const std::vector<std::vector<bool>>& found) {
  const auto texts = static_cast<double>(found.size());
  for (std::size_t word = 0; word < weights_.size(); ++word) {
    const auto having = static_cast<double>(std::ranges::count_if(found, [&](const auto& one) { return one[word]; }));
    weights_[word] = std::log(1 + (texts - having + .5) / (having + .5));
  }
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight = sum > 0 ? weight / sum : 0;
}

}  // namespace muniment::retrieval
