#include "bridge/question.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <optional>
#include <utility>

#include "base/limits.hpp"
#include "bridge/question/general_language.hpp"
#include "bridge/question/templates.hpp"

namespace muniment::bridge {
namespace {

using Refused = std::optional<QuestionRefusal>;

struct Token {
  std::string lowered;  // what the form is compared with
  std::string text;     // what a slot is filled with
  bool replaced = false;
};

QuestionRefusal refuse(std::string_view detail, std::string message, std::vector<std::string> rules = {}) {
  return {std::string(detail), std::move(message), std::move(rules)};
}

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_alnum_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::string lowered_text(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

template <std::size_t N>
bool is_in(const std::string_view (&words)[N], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

std::vector<std::string_view> words_in(std::string_view text, char separator = ' ') {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Words that refer to a person, a place or a time which only this machine knows.
constexpr std::string_view referring_words[] = {
    "i",   "me",  "my",   "mine", "myself", "we",        "us",       "our",     "ours",  "you",  "your",  "yours",
    "he",  "him", "his",  "she",  "her",    "hers",      "this",     "these",   "those", "here", "there", "today",
    "now", "it",  "they", "them", "their",  "yesterday", "tomorrow", "tonight", "ours",  "its",  "itself"};
// Words that join the terms of a slot.
constexpr std::string_view joining_words[] = {"a",    "an",  "the",  "of",   "for",  "in",      "on",   "to",
                                              "with", "and", "or",   "by",   "from", "as",      "at",   "between",
                                              "into", "per", "over", "than", "when", "without", "that", "under",
                                              "via",  "not", "is",   "are",  "be",   "it",      "its"};
constexpr std::string_view number_words[] = {
    "0",       "1",        "2",       "3",       "4",      "5",     "6",      "7",     "8",       "9",      "c",
    "r",       "zero",     "one",     "two",     "three",  "four",  "five",   "six",   "seven",   "eight",  "nine",
    "ten",     "eleven",   "twelve",  "twenty",  "thirty", "forty", "fifty",  "sixty", "seventy", "eighty", "ninety",
    "hundred", "thousand", "million", "billion", "oh",     "nil",   "double", "triple"};
// The alphabet of ICAO, which spells names and tokens.
constexpr std::string_view spelling_words[] = {
    "alpha",  "alfa",    "bravo",   "charlie", "delta",   "echo",     "foxtrot", "golf",  "hotel",  "india",
    "juliet", "juliett", "kilo",    "lima",    "mike",    "november", "oscar",   "papa",  "quebec", "romeo",
    "sierra", "tango",   "uniform", "victor",  "whiskey", "whisky",   "xray",    "x-ray", "yankee", "zulu"};
constexpr std::ptrdiff_t spelling_words_max = 2;
// Words with which no slot begins.
constexpr std::string_view opening_words[] = {"do",     "does",  "did", "is",   "are", "was",  "were",  "can", "could",
                                              "should", "would", "how", "what", "why", "when", "which", "who", "where"};

// Phrases before and after the question itself.
constexpr std::string_view polite_beginnings[] = {"please",
                                                  "hi",
                                                  "hello",
                                                  "hey",
                                                  "ok",
                                                  "so",
                                                  "also",
                                                  "quick question",
                                                  "can you please",
                                                  "could you please",
                                                  "would you please",
                                                  "can you",
                                                  "could you",
                                                  "would you",
                                                  "tell me about",
                                                  "tell me",
                                                  "i want to know",
                                                  "i would like to know",
                                                  "i need to know",
                                                  "do you know",
                                                  "does anyone know",
                                                  "i wonder",
                                                  "in general",
                                                  "in short",
                                                  "generally",
                                                  "briefly"};
constexpr std::string_view polite_ends[] = {"please",        "in simple terms", "in simple words", "in plain english",
                                            "for beginners", "for a beginner",  "in general",      "in short",
                                            "briefly",       "thanks",          "exactly",         "generally",
                                            "in a nutshell", "in detail",       "step by step"};
// Verbs that make "can you" polite.
constexpr std::string_view telling_verbs[] = {"explain", "describe", "tell",   "give", "show",
                                              "list",    "compare",  "define", "name", "please"};

struct Mark {
  std::string_view from, to;
};
constexpr Mark typographic_marks[] = {{"\u2018", "'"}, {"\u2019", "'"}, {"\u201c", "\""}, {"\u201d", "\""},
                                      {"\u00a0", " "}, {"\u2026", "."}, {"\u2013", "-"},  {"\u2011", "-"}};

std::string with_plain_marks(std::string_view query) {
  std::string plain;
  for (std::size_t at = 0; at < query.size();) {
    const auto* mark = std::find_if(std::begin(typographic_marks), std::end(typographic_marks),
                                    [&](const Mark& one) { return query.substr(at).starts_with(one.from); });
    const bool found = mark != std::end(typographic_marks);
    plain += found ? mark->to : query.substr(at, 1);
    at += found ? mark->from.size() : 1;
  }
  return plain;
}

// A noun for a finding of the sanitiser.
std::string_view neutral_noun(const Finding& finding) {
  if (finding.rule.starts_with("path") || finding.rule == "file-url") return "a file";
  if (finding.category == "personal") return "a person";
  return "a computer";
}

class QuestionMaker {
 public:
  QuestionMaker(const CorpusFrequency& frequency, PrivateTerms private_terms)
      : frequency_(frequency), replace_(private_terms == PrivateTerms::replace) {}

  std::variant<Question, QuestionRefusal> make(std::string_view query, Sanitiser& sanitiser) {
    if (query.size() > limits::question_bytes_max) {
      return refuse("too_long", "the question has more than " + std::to_string(limits::question_bytes_max) +
                                    " bytes: ask a shorter one");
    }
    std::string text(query);
    if (auto refused = hide_findings(text, sanitiser.find(query))) return *refused;
    if (auto refused = read_tokens(with_plain_marks(text))) return *refused;
    strip_politeness();
    const auto spelling = std::count_if(tokens_.begin(), tokens_.end(),
                                        [](const Token& one) { return is_in(spelling_words, one.lowered); });
    if (spelling > spelling_words_max) return refuse("number", "the question spells a word: ask without it");
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (auto refused = check_pair(i)) return *refused;
    }
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (auto refused = check_word(i)) return *refused;
    }
    return fill();
  }

 private:
  // Replaces data of persons and places by neutral nouns, if that is allowed; refuses secrets.
  Refused hide_findings(std::string& text, const std::vector<Finding>& findings) {
    if (findings.empty()) return std::nullopt;
    bool secret = false;
    for (const Finding& one : findings) {
      secret = secret || (one.category != "personal" && one.category != "local");
      if (std::find(rules_.begin(), rules_.end(), one.rule) == rules_.end()) rules_.emplace_back(one.rule);
    }
    if (secret) return refuse("secret", "the question holds a secret: remove it", rules_);
    if (!replace_) {
      return refuse("private", "the question holds data of a person, a path or the name of a computer: remove it",
                    rules_);
    }
    redact(text, findings, [](const Finding& one) { return " " + std::string(neutral_noun(one)) + " "; });
    return std::nullopt;
  }

  Refused read_tokens(const std::string& text) {
    if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) < 0 || c < ' '; }))
      return refuse("language", "the question holds characters that are not those of English: ask it in English");
    const std::vector<std::string_view> words = words_in(text);
    if (words.size() > limits::question_words_max) {
      return refuse("too_long", "the question has more than " + std::to_string(limits::question_words_max) +
                                    " words: ask a shorter one");
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (auto refused = add_token(words[i], i + 1 == words.size())) return refused;
    }
    if (tokens_.empty()) return refuse("empty", "the question has no words");
    return std::nullopt;
  }

  Refused add_token(std::string_view word, bool last) {
    if (!general_word(word)) {
      const std::size_t begin = std::min(word.find_first_not_of("\"'("), word.size());
      const std::size_t end = word.find_last_not_of("\"'),?!.") + 1;
      if (end <= begin) return std::nullopt;
      const std::string_view after = word.substr(end);
      word = word.substr(begin, end - begin);
      if (!last && after.find_first_of("?!.") != std::string_view::npos)
        return refuse("form", "the question has several sentences: ask one question");
    }
    std::string lowered = lowered_text(word);
    if (!general_word(word)) {
      const bool plain = std::all_of(lowered.begin(), lowered.end(),
                                     [](char c) { return is_alnum_byte(c) || c == '-' || c == '\'' || c == '/'; });
      if (!plain) return refuse("code", "the question holds marks of code or of a name: describe it in words");
      if (lowered.ends_with("n't") && lowered.size() > 4) {  // doesn't
        add(lowered.substr(0, lowered.size() - 3), word.substr(0, word.size() - 3));
        add("not", "not");
        return std::nullopt;
      }
      if (lowered == "what's" || lowered == "how's" || lowered == "who's") {
        add(lowered.substr(0, lowered.size() - 2), word.substr(0, word.size() - 2));
        add("is", "is");
        return std::nullopt;
      }
    }
    add(std::move(lowered), word);
    return std::nullopt;
  }

  void add(std::string lowered, std::string_view text) { tokens_.push_back({std::move(lowered), std::string(text)}); }

  bool begins_with(const std::vector<std::string_view>& words) const {
    return words.size() < tokens_.size() && std::equal(words.begin(), words.end(), tokens_.begin(),
                                                       [](auto word, const Token& one) { return word == one.lowered; });
  }
  bool ends_with(const std::vector<std::string_view>& words) const {
    return words.size() < tokens_.size() && std::equal(words.rbegin(), words.rend(), tokens_.rbegin(),
                                                       [](auto word, const Token& one) { return word == one.lowered; });
  }

  void strip_politeness() {
    for (bool again = true; again;) {
      again = false;
      for (const std::string_view phrase : polite_beginnings) {
        const auto words = words_in(phrase);
        if (!begins_with(words)) continue;
        if (words.back() == "you" && !is_in(telling_verbs, tokens_[words.size()].lowered)) continue;
        tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(words.size()));
        again = true;
      }
      for (const std::string_view phrase : polite_ends) {
        const auto words = words_in(phrase);
        if (!ends_with(words)) continue;
        tokens_.erase(tokens_.end() - static_cast<std::ptrdiff_t>(words.size()), tokens_.end());
        again = true;
      }
    }
  }

  // Checks that the word is one of general language, and gives it its usual case.
  Refused check_word(std::size_t index) {
    Token& token = tokens_[index];
    std::string_view base = token.text;
    std::string ending;
    auto word = general_word(base);
    if (!word && (base.ends_with("'s") || base.ends_with("s'"))) {
      ending = base.substr(base.size() - (base.ends_with("'s") ? 2 : 1));
      base.remove_suffix(ending.size());
      word = general_word(base);
    }
    if (!word) {
      if (is_form_word(token.lowered)) return std::nullopt;
      return hide_word(index, "unknown_term", "is not in the table of general language");
    }
    const bool capital = std::any_of(token.text.begin(), token.text.end(), is_upper);
    const bool first = index == 0 && std::none_of(token.text.begin() + 1, token.text.end(), is_upper);
    if (capital && !first && word->rank != WordClass::term && token.lowered != "i")
      return hide_word(index, "name", "is written like a name");
    if (word->rank == WordClass::rare) {
      bool held = false;
      const std::string forms = word->base + " " + lowered_text(base);
      for (const std::string_view part : words_in(forms)) {
        if (auto refused = search(part, held)) return refused;
      }
      if (held) return hide_word(index, "corpus", "occurs in the corpora and is rare in general language");
    }
    if (!token.replaced) token.text = word->text + ending;
    return std::nullopt;
  }

  Refused search(std::string_view word, bool& held) const {
    const auto chunks = frequency_(word);
    if (!chunks) {
      return refuse("corpus_unknown",
                    "the corpora cannot be searched for the words of the question: " + chunks.error().message);
    }
    held = held || *chunks > 0;
    return std::nullopt;
  }

  // Finds a name that is cut into two words.
  Refused check_pair(std::size_t index) const {
    const std::string& first = tokens_[index].lowered;
    const std::string& second = tokens_[index + 1].lowered;
    const std::string joined = first + second;
    const auto word = general_word(joined);
    const auto is_rare = [](const std::string& part) {
      const auto found = general_word(part);
      return found && found->rank == WordClass::rare;
    };
    // "unit test" is no cut word, although the corpora may hold "unittest".
    const bool may_be_cut = word ? word->rank == WordClass::rare : is_rare(first) || is_rare(second);
    if (first.size() < 2 || second.size() < 2 || !may_be_cut) return std::nullopt;
    bool held = false;
    if (auto refused = search(joined, held)) return refused;
    if (!held) return std::nullopt;
    return refuse("corpus", "words " + std::to_string(index + 1) + " and " + std::to_string(index + 2) +
                                " of the question make one that occurs in the corpora: ask without it");
  }

  Refused hide_word(std::size_t index, std::string_view detail, std::string_view reason) {
    if (!replace_ || replacements_ == limits::question_replacements_max) {
      return refuse(
          detail, "word " + std::to_string(index + 1) + " of the question " + std::string(reason) + ": ask without it");
    }
    ++replacements_;
    tokens_[index] = {"something", "something", true};
    return std::nullopt;
  }

  static bool is_form_word(std::string_view word) {
    for (const QuestionTemplate& one : question_templates()) {
      for (const std::string_view part : words_in(one.form)) {
        const auto choices = words_in(part.substr(part[0] == '=' ? 1 : 0, part.find('?')), '|');
        if (std::find(choices.begin(), choices.end(), word) != choices.end()) return true;
      }
    }
    return false;
  }

  struct Filled {
    std::array<std::pair<std::size_t, std::size_t>, 2> slots;  // places of their tokens
    std::string_view repeated;                                 // the word of the form that the question repeats
  };

  static void put(std::string& text, std::string_view name, std::string_view value) {
    if (const std::size_t at = text.find(name); at != std::string::npos) text.replace(at, name.size(), value);
  }

  std::variant<Question, QuestionRefusal> fill() const {
    QuestionRefusal refusal = refuse("form",
                                     "the question has none of the forms that may leave this machine, such as "
                                     "\"what is …\", \"how do I …\" or \"compare … and …\"");
    for (const QuestionTemplate& one : question_templates()) {
      Filled filled{};
      if (!match(words_in(one.form), 0, 0, filled, refusal)) continue;
      Question question{std::string(one.question), one.id, rules_};
      put(question.text, "{=}", filled.repeated);
      put(question.text, "{x}", text_of(filled.slots[0]));
      put(question.text, "{y}", text_of(filled.slots[1]));
      return question;
    }
    return refusal;
  }

  // Compares the form from its word `part` with the tokens from `at`. A slot that may not be filled is no match.
  bool match(const std::vector<std::string_view>& form, std::size_t part, std::size_t at, Filled& filled,
             QuestionRefusal& refusal) const {
    if (part == form.size()) return at == tokens_.size();
    std::string_view word = form[part];
    const bool repeated = word.starts_with('=');
    if (repeated) word.remove_prefix(1);
    if (word == "{x}" || word == "{y}") {
      for (std::size_t end = at + 1; end <= tokens_.size(); ++end) {
        if (part + 1 == form.size() && end < tokens_.size()) continue;
        filled.slots[word == "{x}" ? 0 : 1] = {at, end};
        if (!match(form, part + 1, end, filled, refusal)) continue;
        filled.slots[word == "{x}" ? 0 : 1] = {at, end};
        if (!may_fill({at, end}, refusal)) continue;
        return true;
      }
      return false;
    }
    const bool optional = word.ends_with('?');
    const auto choices = words_in(optional ? word.substr(0, word.size() - 1) : word, '|');
    if (at < tokens_.size() && std::find(choices.begin(), choices.end(), tokens_[at].lowered) != choices.end() &&
        match(form, part + 1, at + 1, filled, refusal)) {
      if (repeated) filled.repeated = tokens_[at].lowered;
      return true;
    }
    return optional && match(form, part + 1, at, filled, refusal);
  }

  bool may_fill(std::pair<std::size_t, std::size_t> slot, QuestionRefusal& refusal) const {
    std::size_t terms = 0, numbers = 0, replaced = 0;
    for (std::size_t i = slot.first; i < slot.second; ++i) {
      const Token& token = tokens_[i];
      const bool first = i == slot.first;
      if (is_in(referring_words, token.lowered) && (first || !is_in(joining_words, token.lowered))) {
        refusal = refuse("own",
                         "the question refers to a person, a place or a time that only this machine knows "
                         "(my, our, this, today): ask in general");
        return false;
      }
      if (first && is_in(opening_words, token.lowered)) return false;
      if (is_in(joining_words, token.lowered)) continue;
      ++terms;
      replaced += token.replaced ? 1U : 0U;
      numbers += is_in(number_words, token.lowered) ? 1U : 0U;
    }
    if (numbers > 1) {
      refusal = refuse("number", "the question spells a number: ask without it");
      return false;
    }
    if (terms > limits::question_slot_terms_max || slot.second - slot.first > limits::question_slot_words_max) {
      refusal = refuse("too_long", "a term of the question has more than " +
                                       std::to_string(limits::question_slot_terms_max) + " words: ask a shorter one");
      return false;
    }
    if (terms == replaced && replaced > 0) {
      refusal = refuse("private", "nothing of general language is left of the question");
      return false;
    }
    return terms > 0;
  }

  std::string text_of(std::pair<std::size_t, std::size_t> slot) const {
    std::string text;
    for (std::size_t i = slot.first; i < slot.second; ++i) text += (text.empty() ? "" : " ") + tokens_[i].text;
    return text;
  }

  const CorpusFrequency& frequency_;
  bool replace_;
  std::size_t replacements_ = 0;
  std::vector<std::string> rules_;
  std::vector<Token> tokens_;
};

}  // namespace

std::variant<Question, QuestionRefusal> make_question(std::string_view query, Sanitiser& sanitiser,
                                                      const CorpusFrequency& corpus_frequency,
                                                      PrivateTerms private_terms) {
  return QuestionMaker(corpus_frequency, private_terms).make(query, sanitiser);
}

}  // namespace muniment::bridge
