// Computes the profile of a text in one pass over its lines and tokens.
#include "evidence/completion/text/profile.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "evidence/completion/text/blanks.hpp"
#include "evidence/completion/text/facts.hpp"
#include "evidence/completion/text/line_kinds.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::uint32_t says_nothing = stop_word | work_verb | praise | generic_noun | test_word | result_name |
                                       future | hedge | preposition | negation | pseudo_latin | blank | soft_blank |
                                       runner_name | count_noun | observation | deed | slot_word | weakening;
// A distinct word of the text.
struct Word {
  std::uint32_t classes = 0;
  std::uint8_t seen = 0;    // places in which it occurred outside of a frame
  std::uint8_t others = 0;  // places in which it was counted as naming a different subject
  std::uint64_t terms = 0;  // bits: terms of the task that it names
};
enum Place : std::uint8_t { anywhere = 1U << 0, in_name = 1U << 1, in_test = 1U << 2, in_text = 1U << 3 };
static_assert(task_terms_max <= 64);

constexpr std::size_t weakening_reach_words = 4;
constexpr std::size_t prompts_counted_max = 4;
constexpr std::size_t commands_counted_max = 2;
constexpr std::size_t digest_bytes_min = 7;

// Returns whether the token is the hash of a commit or a checksum, whose letters form no words.
bool is_digest(std::string_view core) {
  if (core.size() < digest_bytes_min || std::none_of(core.begin(), core.end(), is_digit)) return false;
  return position_of(core, [](char c) { return !is_digit(c) && (c < 'a' || c > 'f'); }) == core.size();
}

// Returns whether the token names a test: "tests/test_slug.py", "TestRetry", "router.spec.ts".
bool names_test(std::string_view token) {
  bool found = false;
  each_word(token, [&](std::string_view word) { found = found || (classes_of(word) & test_object) != 0; });
  return found;
}

void take_cover(Profile& profile, const Term& term) {
  profile.covered_weight += term.weight;
  if (term.weight > 1) profile.covered_specific += term.weight;
}

class Profiler {
 public:
  Profiler(const TaskTerms& task, Profile& profile, std::size_t bytes)
      : task_(task), profile_(profile), index_(bytes), tokens_(bytes) {
    profile_.covered.resize(task.terms.size());
    profile_.covered_by_names.resize(task.terms.size());
  }

  void read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

 private:
  void read_line(std::string_view line) {
    if (position_of(line, [](char c) { return !is_blank(c); }) == line.size()) {
      end_sentence();
      return;
    }
    profile_.blank_text = false;
    if (!lines_.add(hash_of(line))) ++profile_.repeated_lines;
    frame_ = is_frame(line);
    if (frame_ && line.starts_with("rootdir:")) cover(profile_, line.substr(0, word_bytes_max * 2), task_);
    if (is_status_line(line)) {
      ++profile_.status_lines;
      status_ = true;
      test_line_ = !is_build_step(line) && line.find(" = ") == std::string_view::npos;
    }
    ++profile_.lines;
    if (begins_item(line)) end_sentence();
    if (names_command(line) && commands_++ < commands_counted_max) ++profile_.half_facts;
    const bool answered = typed_;  // output after a command shows that it ran
    typed_ = is_typed(line);
    if ((typed_ || answered) && prompts_++ < prompts_counted_max) ++profile_.half_facts;
    const Field field = field_of(line);
    if (!field.name.empty()) read_field(field);
    profile_.blanks += blanks_inside(line);
    read_tokens(line);
    status_ = test_line_ = false;
    sentence_start_ = true;
  }

  void read_field(const Field& field) {
    ++profile_.fields;
    switch (blank_kind(field.value)) {
      case Blank::no: return;
      case Blank::soft: ++profile_.soft_fields; return;
      case Blank::hard:
        ++profile_.blanks;
        if (field.promises_result) ++profile_.blank_results;
        return;
    }
  }

  void read_tokens(std::string_view line) {
    Token token(next_token(line));
    while (!token.whole.empty()) {
      const Token after(next_token(line));
      read_token(token, after);
      token = after;
    }
  }

  // The properties of a token, computed once for its use as token and as following token.
  struct Token {
    explicit Token(std::string_view text) : whole(text), core(core_of(text)), kinds(kinds_in(core)) {}
    bool has(unsigned kind) const { return (kinds & kind) != 0; }
    bool letters() const { return has(lower_byte | upper_byte | wide_byte); }
    bool number() const { return kinds == digit_byte; }  // digits and nothing else
    std::string_view whole, core;
    std::uint16_t kinds = 0;
  };

  static std::string_view next_token(std::string_view& line) {
    std::size_t begin = 0;
    while (begin < line.size() && is_blank(line[begin])) ++begin;
    std::size_t end = begin;
    while (end < line.size() && !is_blank(line[end])) ++end;
    const std::string_view token = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return token;
  }

  void read_token(const Token& token, const Token& after) {
    const std::string_view core = token.core;
    const bool digits = token.has(digit_byte);
    if (digits) {
      ++profile_.numbers;
      if (token.number() && (after_number_ || after.number())) ++profile_.bare_numbers;
    }
    behind_number_ = after_number_;
    after_number_ = token.number();
    naming_ = status_;
    in_code_ = false;
    other_ = test_line_ ? place_of_others(token, false) : 0;
    // Only the first occurrence of a token counts; a number is identified together with its noun.
    const std::uint64_t identity = digits ? hash_of(core) ^ (hash_of(after.core) * 3) : hash_of(core);
    if (!core.empty() && tokens_.add(identity)) {
      const TokenFacts facts = facts_of_token(core, after.core);
      const bool identifier = facts.identifier;
      naming_ = status_ || identifier;
      in_code_ = identifier;
      if (other_ == 0) other_ = place_of_others(token, identifier);
      if (!is_token_of_task(core)) {
        profile_.half_facts += facts.half_facts;
        if (is_name(core)) ++profile_.half_facts;
      }
      if (status_ && identifier) ++profile_.names_of_tests;
    }
    if (digits && is_digit(core[0]) && token.has(dot_byte)) test_line_ = false;  // after the time
    if (token.letters() && !(digits && is_digest(core)))
      each_word(token.whole, [&](std::string_view word) { read_word(word); });
    const char last = token.whole.back();
    if (last == '.' || last == '!' || last == '?' || last == ';') end_sentence();
    if (last == '.' || last == '!' || last == '?' || last == ':') {
      sentence_start_ = true;
    } else if (token.letters() || digits) {
      sentence_start_ = false;  // marks of a heading or an item do not begin the sentence
    }
  }

  // Returns the kind of place in which words name a different subject; 0: none. A path names a location and does not
  // count; a test's name is chosen for its subject.
  std::uint8_t place_of_others(const Token& token, bool identifier) const {
    const bool path = token.has(slash_byte);
    if ((test_line_ && !path) || (identifier && names_test(token.core))) return in_test;
    if (path || typed_) return 0;
    if (!identifier) return status_ ? 0 : in_text;
    return token.has(dot_byte) && token.core.find('_') == std::string_view::npos ? 0 : in_name;  // a file
  }

  bool is_token_of_task(std::string_view core) const {
    char small[word_bytes_max];
    if (core.size() > word_bytes_max) return false;
    std::transform(core.begin(), core.end(), small, lower);
    return task_.tokens.contains(hash_of(std::string_view(small, core.size())));
  }

  // Returns whether the token is a name: a capitalised word inside a sentence, neither general nor in the task
  // ("Priya", "Chrome").
  bool is_name(std::string_view core) const {
    if (sentence_start_ || core.size() < 3 || core[0] < 'A' || core[0] > 'Z') return false;
    if (!std::all_of(core.begin() + 1, core.end(), [](char c) { return c >= 'a' && c <= 'z'; })) return false;
    const std::string small = lowered(core.substr(0, word_bytes_max));
    return (classes_of(small) & says_nothing) == 0 && !task_.has(small);
  }

  void read_word(std::string_view word) {
    ++profile_.words;
    if (word.size() == 1) ++profile_.single_letters;
    const std::uint64_t hash = hash_of(word);
    const auto [index, is_new] = index_.insert(hash, static_cast<std::uint32_t>(words_.size()));
    if (is_new) {
      words_.push_back({classes_of(word), 0, 0, terms_named(word)});
      first_time(word, words_.back().classes, task_.words.contains(hash));
    }
    Word& known = words_[index];
    const std::uint32_t classes = known.classes;
    if (!frame_) {
      const auto seen = static_cast<std::uint8_t>(known.seen | anywhere | (naming_ ? in_name : 0));
      if (known.seen == 0 && word.size() >= 3 && (classes & says_nothing) == 0) ++profile_.subject_words;
      if (known.seen != seen && known.terms != 0) cover_terms(known.terms);
      known.seen = seen;
    }
    const bool behind_other = behind_other_;
    behind_other_ = false;
    if (other_ != 0 && (known.others & other_) == 0) count_other(word, hash, known);
    if (behind_other && (classes & generic_noun) != 0 && task_.words.contains(hash)) ++profile_.others_of_kind;
    profile_.classes |= classes;
    if ((classes & stop_word) != 0 && word.size() > 1) ++profile_.stop_words;
    if ((classes & (stop_word | preposition)) == preposition) ++profile_.prepositions;
    if ((classes & pseudo_latin) != 0) ++profile_.pseudo_latin;
    if ((classes & (blank | soft_blank)) != 0) ++profile_.blank_words;
    sentence_classes_ |= classes;
    follow_weakening(word, classes);
  }

  void first_time(std::string_view word, std::uint32_t classes, bool of_task) {
    ++profile_.distinct;
    if ((classes & pseudo_latin) != 0) ++profile_.pseudo_latin_distinct;
    if (classes == 0 && !typed_) add_word(profile_.likeness, word);
    if (classes != 0 && word.size() >= judged_word_letters_min) profile_.likeness.letters += word.size();
    const bool symbol = word.starts_with("\xF0\x9F") || word.starts_with("\xE2");  // emoji, check marks, arrows
    if ((classes & says_nothing) == 0 && word.size() >= 3 && !symbol && !of_task) ++profile_.specific;
  }

  void count_other(std::string_view word, std::uint64_t hash, Word& known) {
    known.others |= other_;
    if (frame_ || word.size() < 3 || (known.classes & says_nothing) != 0 || known.terms != 0 ||
        task_.words.contains(hash))
      return;
    behind_other_ = other_ == in_text;
    // The name of a test file or function counts more than a title, which is a sentence.
    if (other_ == in_test && in_code_) ++profile_.others_in_tests;
    ++(other_ == in_test   ? profile_.others_in_tests
       : other_ == in_name ? profile_.others_in_names
                           : profile_.others_in_text);
  }

  std::uint64_t terms_named(std::string_view word) const {
    if (task_.terms.empty()) return 0;
    const std::uint64_t concept_hash = hash_of(concept_of(stem_of(word)));
    std::uint64_t named = 0;
    for (std::size_t i = 0; i < task_.terms.size(); ++i)
      named |= std::uint64_t{names(task_.terms[i], word, concept_hash)} << i;
    return named;
  }

  void cover_terms(std::uint64_t named) {
    for (std::size_t i = 0; i < task_.terms.size(); ++i) {
      if (profile_.covered_by_names[i] || (named >> i & 1) == 0) continue;
      const Term& term = task_.terms[i];
      if (!profile_.covered[i]) {
        profile_.covered[i] = true;
        take_cover(profile_, term);
      }
      if (!naming_) continue;
      profile_.covered_by_names[i] = true;
      if (term.weight > 1) profile_.covered_by_names_specific += term.weight;
    }
  }

  // Detects weakened tests: "removed the failing assertion", "skipped two tests"; not "no tests were removed".
  void follow_weakening(std::string_view word, std::uint32_t classes) {
    if ((classes & negation) != 0) since_weakening_ = weakening_reach_words + 1;
    // "1 disabled test" is a count; "disabled 1 test" is an action.
    if ((classes & weakening) != 0 && (sentence_classes_ & negation) == 0 && !status_ && !behind_number_) {
      since_weakening_ = 0;
      return;
    }
    if (since_weakening_ < weakening_reach_words && (classes & test_object) != 0 && word != "spec")
      profile_.weakened = true;
    ++since_weakening_;
  }

  void end_sentence() {
    sentence_classes_ = 0;
    since_weakening_ = weakening_reach_words + 1;
  }

  const TaskTerms& task_;
  Profile& profile_;
  std::vector<Word> words_;
  WordTable index_;  // of words_
  WordTable tokens_, lines_;
  std::uint8_t other_ = 0;  // place for which the token's words are counted as naming a different subject
  bool test_line_ = false, typed_ = false, behind_other_ = false;
  bool frame_ = false, status_ = false, naming_ = false, in_code_ = false, sentence_start_ = true;
  bool after_number_ = false, behind_number_ = false;
  std::size_t commands_ = 0, prompts_ = 0;
  std::uint32_t sentence_classes_ = 0;
  std::size_t since_weakening_ = weakening_reach_words + 1;
};

}  // namespace

Profile profile_of(std::string_view text, const TaskTerms& task) {
  Profile profile;
  Profiler profiler(task, profile, std::min(text.size(), profiled_bytes_max));
  if (text.size() <= profiled_bytes_max) {
    profiler.read(text);
  } else {
    profiler.read(text.substr(0, profiled_bytes_max / 2));
    profiler.read(text.substr(text.size() - profiled_bytes_max / 2));
  }
  return profile;
}

void cover(Profile& profile, std::string_view more, const TaskTerms& task) {
  profile.covered.resize(task.terms.size());
  each_word(more, [&](std::string_view word) {
    profile.classes |= classes_of(word);
    const std::uint64_t concept_hash = hash_of(concept_of(stem_of(word)));
    for (std::size_t i = 0; i < task.terms.size(); ++i) {
      if (profile.covered[i] || !names(task.terms[i], word, concept_hash)) continue;
      profile.covered[i] = true;
      take_cover(profile, task.terms[i]);
    }
  });
}

}  // namespace muniment::evidence::completion
