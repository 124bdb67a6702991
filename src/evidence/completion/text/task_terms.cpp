// Extracts the terms of a task, and compares them with words.
#include "evidence/completion/text/task_terms.hpp"

#include <algorithm>
#include <array>

#include "evidence/completion/text/facts.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr int surroundings_weight = 2, kind_weight = 1;
constexpr std::size_t shared_prefix_min = 4;
constexpr std::size_t abbreviation_min = 5;  // length of a term that may abbreviate a long word
constexpr std::size_t shared_stem_min = 6;
constexpr std::size_t contained_min = 5;     // excludes "port" in "report"
constexpr std::size_t abbreviated_min = 10;  // letters of a long word

bool is_quantity(std::string_view word) {
  constexpr std::array<std::string_view, 18> quantities{"two",     "three", "four",  "five",   "six",    "seven",
                                                        "eight",   "nine",  "ten",   "twelve", "twenty", "fifty",
                                                        "hundred", "above", "below", "least",  "most",   "than"};
  return std::find(quantities.begin(), quantities.end(), word) != quantities.end();
}

int weight_of(std::string_view word, std::uint32_t classes, bool after_preposition) {
  if (word.size() < 2 || is_quantity(word)) return 0;
  if ((classes & (stop_word | preposition | work_verb | test_word | negation)) != 0) return 0;
  if ((classes & (generic_noun | praise | result_name)) != 0) return kind_weight;
  return after_preposition ? surroundings_weight : object_weight;
}

// Returns whether the token is code, which names an object in any position: `has_key`, QuerySet.bulk_create(),
// "coth(log(x))".
bool is_code(std::string_view token) {
  if (is_identifier(core_of(token)) || token.find('`') != std::string_view::npos) return true;
  const std::size_t open = token.find('(');
  return open != std::string_view::npos && open > 0 && token.find(')') != std::string_view::npos;
}

bool is_determiner(std::string_view word) {
  constexpr std::array<std::string_view, 12> determiners{"the", "a",    "an",   "all",   "every", "each",
                                                         "our", "this", "that", "these", "any",   "which"};
  return std::find(determiners.begin(), determiners.end(), word) != determiners.end();
}

class Collector {
 public:
  explicit Collector(TaskTerms& made) : made_(made) {}

  void read_token(std::string_view token) {
    made_.tokens.add(hash_of(lowered(core_of(token))));
    const bool code = is_code(token);
    made_.names_code = made_.names_code || code;
    each_word(token, [&](std::string_view word) { read_word(word, code); });
  }

 private:
  void read_word(std::string_view word, bool code) {
    const std::uint32_t classes = classes_of(word);
    made_.classes |= classes;
    const bool tests = (classes & test_word) != 0 && (classes & praise) == 0;
    made_.speaks_of_tests = made_.speaks_of_tests || tests || (classes & runner_name) != 0;
    if (++read_ == 2 && !made_.terms.empty() && is_determiner(word)) weaken_head();
    made_.words.add(hash_of(word));
    if ((classes & preposition) != 0 && named_) surroundings_ = true;
    const int weight = weight_of(word, classes, surroundings_ && !code);
    if (weight == 0 || made_.terms.size() == task_terms_max) return;
    Term term;
    term.word = word;
    term.stem = stem_of(word);
    term.concept_hash = hash_of(concept_of(term.stem));
    term.weight = weight;
    const auto same = std::find_if(made_.terms.begin(), made_.terms.end(),
                                   [&](const Term& other) { return other.concept_hash == term.concept_hash; });
    if (weight > kind_weight) named_ = true;
    if (same != made_.terms.end() && same->weight < weight) {  // "warnings of warn.c": the name has the greater weight
      made_.weight += weight - same->weight;
      made_.specific += same->weight > kind_weight ? weight - same->weight : weight;
      same->weight = weight;
      same->word = term.word;
    }
    if (same == made_.terms.end()) {
      made_.weight += weight;
      if (weight > kind_weight) made_.specific += weight;
      made_.terms.push_back(std::move(term));
    }
  }

  // Lowers the weight of the verb of an order: "Leave the tree clean", "Archive all orders".
  void weaken_head() {
    Term& head = made_.terms.front();
    if (head.weight <= kind_weight) return;
    made_.weight -= head.weight - kind_weight;
    made_.specific -= head.weight;
    head.weight = kind_weight;
    named_ = false;
  }

  TaskTerms& made_;
  std::size_t read_ = 0;
  bool named_ = false, surroundings_ = false;
};

}  // namespace

TaskTerms terms_of(std::string_view content) {
  TaskTerms made;
  content = content.substr(0, task_bytes_read_max);
  Collector collector(made);
  for (std::size_t i = 0; i < content.size();) {
    while (i < content.size() && is_blank(content[i])) ++i;
    const std::size_t begin = i;
    while (i < content.size() && !is_blank(content[i])) ++i;
    if (i > begin) collector.read_token(content.substr(begin, i - begin));
  }
  return made;
}

bool names(const Term& term, std::string_view word, std::uint64_t concept_hash) {
  if (term.concept_hash == concept_hash) return true;
  // "ratelimiter" for "limiter", "workqueue" for "queue"
  if (term.stem.size() >= contained_min && word.size() > term.stem.size() &&
      word.find(term.stem) != std::string_view::npos) {
    return true;
  }
  const std::size_t shorter = std::min(word.size(), term.word.size());
  if (shorter < shared_prefix_min || word[0] != term.word[0]) return false;
  // "multiplies" and "multiplication": a long common prefix suffices.
  std::size_t shared = 0;
  while (shared < shorter && word[shared] == term.word[shared]) ++shared;
  if (shared >= shared_stem_min && shared * 10 >= shorter * 7) return true;
  const bool abbreviates = word.size() < term.word.size();
  if (abbreviates && shorter < abbreviation_min && term.word.size() < abbreviated_min) return false;
  return shared == shorter;
}

}  // namespace muniment::evidence::completion
