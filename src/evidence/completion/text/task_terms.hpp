// The subject of a task: the terms of its content that distinguish it from other tasks, each with a weight.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {

inline constexpr int object_weight = 4;
inline constexpr std::size_t task_terms_max = 64;
inline constexpr std::size_t task_bytes_read_max = 4096;  // bytes of the content that are read

struct Term {
  std::string word;  // in lower case
  std::string stem;
  std::uint64_t concept_hash = 0;
  int weight = 0;  // 4: the task's object, 2: its context, 1: generic nouns
};

struct TaskTerms {
  std::vector<Term> terms;
  WordTable words;               // hashes of all words of the content
  WordTable tokens;              // hashes of all tokens between white space, in lower case
  std::uint32_t classes = 0;     // classes of all words together
  bool speaks_of_tests = false;  // names tests or a runner; "pass" alone does not
  bool names_code = false;       // a token is an identifier or a path
  int weight = 0;                // sum of the weights of all terms
  int specific = 0;              // sum of the weights above 1; 0: the task names no subject
  bool has(std::string_view lower_word) const { return words.contains(hash_of(lower_word)); }
};

TaskTerms terms_of(std::string_view task_content);

// Returns whether a word of a text names the term: both have the same concept, the word contains the term's
// stem, one is a prefix of the other ("auth" for "authentication"), or both share a long prefix.
bool names(const Term& term, std::string_view word, std::uint64_t concept_hash);

}  // namespace muniment::evidence::completion
