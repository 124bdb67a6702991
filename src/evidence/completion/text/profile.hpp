// What one pass over a text counts: words by class, facts, blanks, repetition, likeness to words, and the task's terms
// that it names. The checks of substance and relevance read nothing else of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "evidence/completion/text/likeness.hpp"
#include "evidence/completion/text/task_terms.hpp"

namespace muniment::evidence::completion {

inline constexpr std::size_t profiled_bytes_max = 128 * 1024;  // of a text: its first and its last half of that

struct Profile {
  bool blank_text = true;  // white space and nothing else
  std::size_t lines = 0;   // with a letter or a digit
  std::size_t words = 0;
  std::size_t numbers = 0;
  std::size_t bare_numbers = 0;    // whole, without a noun or a unit, and next to another number
  std::size_t single_letters = 0;  // words of one letter
  std::size_t distinct = 0;        // words
  std::size_t specific = 0;        // distinct words that are in no class and not in the task
  std::size_t pseudo_latin = 0, pseudo_latin_distinct = 0;
  std::size_t blank_words = 0;  // of the classes blank and soft_blank
  std::size_t half_facts = 0;   // concrete statements, two each; a weak one counts one
  std::size_t sentences = 0, promises = 0, hedges = 0;
  std::size_t blanks = 0;         // TODO, [PENDING], <insert …>, "XX passed"
  std::size_t blank_results = 0;  // "Test results: TBD"
  std::size_t fields = 0, soft_fields = 0;
  std::size_t status_lines = 0;  // "test_x ... ok", "PASSED tests/x.py::y", "ok 3 - z"
  std::size_t repeated_lines = 0;
  std::size_t names_of_tests = 0;  // distinct identifiers in lines with a status
  bool runner_named = false;
  bool edited_after = false;  // "after that run I rewrote the cache"
  bool weakened = false;      // "removed the failing assertion"
  Likeness likeness;
  std::vector<bool> covered;           // by index of the task's terms
  std::vector<bool> covered_by_names;  // those that an identifier, a path or a line of a test names
  int covered_by_names_specific = 0;
  int covered_weight = 0;
  int covered_specific = 0;       // weight of those that are no kinds of things
  std::size_t subject_words = 0;  // distinct words that could name a subject, in the task or not
  std::size_t stop_words = 0;     // the, of, and: sentences have them, what a tool prints hardly any
  std::size_t prepositions = 0;   // that are no stop words: in, by, from
  // Distinct words that could name a subject and name none of the task's terms: in the names of tests and of their
  // files (two each) or titles of tests, in identifiers that are no paths, and in running text that is no command.
  std::size_t others_in_tests = 0, others_in_names = 0, others_in_text = 0;
  std::size_t others_of_kind = 0;  // of the latter, those in front of a kind of thing that the task names
  std::uint32_t classes = 0;
};

Profile profile_of(std::string_view text, const TaskTerms& task);

// Adds to the covered terms those that `more` names (metadata, type, command line).
void cover(Profile& profile, std::string_view more, const TaskTerms& task);

}  // namespace muniment::evidence::completion
