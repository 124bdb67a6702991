// What a task is about: the terms of its content that tell it from another task, each with a weight.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {

inline constexpr int object_weight = 4;
inline constexpr std::size_t task_terms_max = 64;
inline constexpr std::size_t task_bytes_read_max = 4096;  // of the content

struct Term {
  std::string word;  // in lower case
  std::string stem;
  std::uint64_t concept_hash = 0;
  int weight = 0;  // 4: names the object, 2: names its surroundings, 1: kinds of things
};

struct TaskTerms {
  std::vector<Term> terms;
  WordTable words;               // every word of the content, hashed
  WordTable tokens;              // every token between white space, in lower case, hashed
  std::uint32_t classes = 0;     // of all words together
  bool speaks_of_tests = false;  // names tests or a runner; "pass" alone does not
  bool names_code = false;       // a token is an identifier or a path
  int weight = 0;                // of all terms
  int specific = 0;              // weight of those that are no kinds of things; 0: the task names nothing of its own
  bool has(std::string_view lower_word) const { return words.contains(hash_of(lower_word)); }
};

TaskTerms terms_of(std::string_view task_content);

// Whether a word of a text names the term: the same concept, or one word begins with the other ("auth" for
// "authentication").
bool names(const Term& term, std::string_view word, std::uint64_t concept_hash);

}  // namespace muniment::evidence::completion
