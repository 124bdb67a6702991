// The words of a question with their weights, and how many of them a text has. Words are those of the lexical lane: in
// the stems of the passages' languages, without function words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "retrieval/lexical/query_terms.hpp"

namespace muniment::retrieval {

class QuestionWords {
 public:
  // `languages`: those of the passages, ISO 639-1 or "none".
  QuestionWords(std::string_view question, const std::vector<std::string_view>& languages);

  std::size_t size() const { return groups_.size(); }

  // Returns for each word whether the text has it.
  std::vector<bool> found_in(std::string_view text, std::string_view language);

  // Sets the weights from the texts that are compared: a word that few of them have tells more (the idf of BM25).
  void weigh(const std::vector<std::vector<bool>>& found);
  double weight(std::size_t word) const { return weights_[word]; }  // the weights sum to 1

 private:
  std::vector<TermGroup> groups_;
  std::vector<double> weights_;
  Stemmers stemmers_;
};

}  // namespace muniment::retrieval
