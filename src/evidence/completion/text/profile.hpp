// The counts of one pass over a text: words by class, facts, blanks, repetition, likeness to words, and the terms of
// the task that it names. The checks of substance and relevance depend on a text mainly through its profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "evidence/completion/text/likeness.hpp"
#include "evidence/completion/text/task_terms.hpp"

namespace muniment::evidence::completion {

inline constexpr std::size_t profiled_bytes_max =
    128 * 1024;  // limit; for a longer text, half of this length is read from each end

struct Profile {
  bool blank_text = true;  // the text is empty or white space
  std::size_t lines = 0;   // lines with a letter or a digit
  std::size_t words = 0;
  std::size_t numbers = 0;
  std::size_t bare_numbers = 0;    // integers without a noun or a unit, next to another number
  std::size_t single_letters = 0;  // words of a single letter
  std::size_t distinct = 0;        // distinct words
  std::size_t specific = 0;        // distinct words in no class and not in the task
  std::size_t pseudo_latin = 0, pseudo_latin_distinct = 0;
  std::size_t blank_words = 0;    // words of the classes blank and soft_blank
  std::size_t half_facts = 0;     // two for each concrete statement, one for a weak one
  std::size_t blanks = 0;         // TODO, [PENDING], <insert …>, "XX passed"
  std::size_t blank_results = 0;  // "Test results: TBD"
  std::size_t fields = 0, soft_fields = 0;
  std::size_t status_lines = 0;  // "test_x ... ok", "PASSED tests/x.py::y", "ok 3 - z"
  std::size_t repeated_lines = 0;
  std::size_t names_of_tests = 0;  // distinct identifiers in status lines
  bool weakened = false;           // "removed the failing assertion"
  Likeness likeness;
  std::vector<bool> covered;           // by index of the task's terms: the text names the term
  std::vector<bool> covered_by_names;  // by index: an identifier, a path or a line of a test names the term
  int covered_by_names_specific = 0;
  int covered_weight = 0;
  int covered_specific = 0;       // weight of the covered terms without generic nouns
  std::size_t subject_words = 0;  // distinct words that could name a subject, in the task or not
  std::size_t stop_words = 0;     // the, of, and: frequent in sentences, rare in the output of tools
  std::size_t prepositions = 0;   // prepositions that are not stop words: in, by, from
  // Distinct words that could name a subject and name none of the task's terms: in the names of tests and of their
  // files (two each) or titles of tests, in identifiers other than paths, and in running text other than commands.
  std::size_t others_in_tests = 0, others_in_names = 0, others_in_text = 0;
  std::size_t others_of_kind = 0;  // words in running text before a kind of thing that the task names
  std::uint32_t classes = 0;
};

Profile profile_of(std::string_view text, const TaskTerms& task);

// Adds the terms that `more` names (metadata, type, command line) to the covered terms.
void cover(Profile& profile, std::string_view more, const TaskTerms& task);

}  // namespace muniment::evidence::completion
