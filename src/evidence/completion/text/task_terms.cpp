#include "evidence/completion/text/task_terms.hpp"

#include <algorithm>

namespace muniment::evidence::completion {
namespace {

constexpr int object_weight = 4, surroundings_weight = 2, kind_weight = 1;
constexpr std::size_t shared_prefix_min = 4;

int weight_of(std::string_view word, std::uint32_t classes, bool after_preposition) {
  if (word.size() < 2) return 0;
  if ((classes & (stop_word | preposition | work_verb | test_word | negation)) != 0) return 0;
  if ((classes & (generic_noun | praise | result_name)) != 0) return kind_weight;
  return after_preposition ? surroundings_weight : object_weight;
}

void collect_tokens(std::string_view text, WordTable& tokens) {
  for (std::size_t i = 0; i < text.size();) {
    while (i < text.size() && is_blank(text[i])) ++i;
    const std::size_t begin = i;
    while (i < text.size() && !is_blank(text[i])) ++i;
    if (i > begin) tokens.add(hash_of(lowered(text.substr(begin, i - begin))));
  }
}

}  // namespace

TaskTerms terms_of(std::string_view content) {
  TaskTerms made;
  content = content.substr(0, task_bytes_read_max);
  collect_tokens(content, made.tokens);
  bool named = false, surroundings = false;
  each_word(content, [&](std::string_view word) {
    const std::uint32_t classes = classes_of(word);
    made.classes |= classes;
    made.words.add(hash_of(word));
    if ((classes & preposition) != 0 && named) surroundings = true;
    const int weight = weight_of(word, classes, surroundings);
    if (weight == 0 || made.terms.size() == task_terms_max) return;
    Term term;
    term.word = word;
    term.stem = stem_of(word);
    term.concept_hash = hash_of(concept_of(term.stem));
    term.weight = weight;
    const auto same = std::find_if(made.terms.begin(), made.terms.end(),
                                   [&](const Term& other) { return other.concept_hash == term.concept_hash; });
    if (weight > kind_weight) named = made.specific = true;
    if (same == made.terms.end()) {
      made.weight += weight;
      made.terms.push_back(std::move(term));
    }
  });
  return made;
}

bool names(const Term& term, std::string_view word, std::uint64_t concept_hash) {
  if (term.concept_hash == concept_hash) return true;
  const std::size_t shorter = std::min(word.size(), term.word.size());
  if (shorter < shared_prefix_min || word[0] != term.word[0]) return false;
  return word.substr(0, shorter) == std::string_view(term.word).substr(0, shorter);
}

}  // namespace muniment::evidence::completion
