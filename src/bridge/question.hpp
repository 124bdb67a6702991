// Makes the question that may leave this machine from a query: one of a table of typed questions
// (question/templates.hpp), filled with words of general language. A query of any other form or with any other word is
// refused.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "bridge/sanitiser.hpp"

namespace muniment::bridge {

struct Question {
  std::string text;                // what leaves the machine
  std::string_view template_id;    // of the table of templates
  std::vector<std::string> rules;  // whose findings were replaced
};

// The reasons of a refusal hold no part of the query, so that they can be recorded.
struct QuestionRefusal {
  std::string detail;              // the condition that failed: docs/retrieval.md lists them
  std::string message;             // what failed and what to change
  std::vector<std::string> rules;  // of the sanitiser that fired
};

// Treatment of terms that are not of general language: they refuse the question, or neutral nouns replace them. Secrets
// always refuse it.
enum class PrivateTerms { refuse, replace };

// Returns how many chunks of the corpora hold the word, in lower case. A failure refuses the question.
using CorpusFrequency = std::function<Result<std::size_t>(std::string_view word)>;

// `sanitiser` is one of Scope::outbound.
std::variant<Question, QuestionRefusal> make_question(std::string_view query, Sanitiser& sanitiser,
                                                      const CorpusFrequency& corpus_frequency,
                                                      PrivateTerms private_terms = PrivateTerms::refuse);

}  // namespace muniment::bridge
