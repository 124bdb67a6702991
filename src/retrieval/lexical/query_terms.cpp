// Converts a query to groups of terms and phrases.
#include "retrieval/lexical/query_terms.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_map>

#include "base/limits.hpp"
#include "retrieval/query/function_words.hpp"

namespace muniment::retrieval {
namespace {

void add_once(std::vector<std::string>& list, std::string item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(std::move(item));
}

// Shorter words have too many others at one edit, and digits distinguish names.
bool may_be_misspelt(const Word& word) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80; };
  return word.kind == Word::Kind::plain && word.text.size() >= limits::corrected_word_bytes_min &&
         word.text.size() <= limits::corrected_word_bytes_max && std::ranges::all_of(word.text, is_letter);
}

// Returns the languages that the query may be in, as bits.
std::uint32_t languages_of(const std::vector<Word>& words, std::uint32_t usual) {
  std::array<int, function_words::lists.size()> counts{};
  for (const Word& word : words) {
    if (word.kind != Word::Kind::plain || word.capitals) continue;
    const std::uint32_t languages = languages_of_function_word(word.text);
    for (std::size_t i = 0; i < counts.size(); i++) counts[i] += static_cast<int>(languages >> i & 1);
  }
  const int most = *std::ranges::max_element(counts);
  if (most < 2) return usual;
  std::uint32_t shown = 0;
  for (std::size_t i = 0; i < counts.size(); i++) shown |= counts[i] == most ? std::uint32_t{1} << i : 0;
  return shown;
}

class Collector {
 public:
  Collector(const Languages& languages, Stemmers& stemmers) : languages_(languages), stemmers_(stemmers) {}

  void read(std::string_view text) {
    std::vector<Word> words = words_of(text.substr(0, limits::query_text_bytes_max), limits::query_words_max);
    words_.insert(words_.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
  }

  std::vector<TermGroup> collect() {
    const std::uint32_t languages = languages_of(words_, languages_.usual);
    add_all(languages);
    if (groups_.empty()) add_all(0);  // "war" alone is a word of some language
    return std::move(groups_);
  }

 private:
  void add_all(std::uint32_t silent) {
    for (std::size_t i = 0; i < words_.size(); i++) {
      const Word& word = words_[i];
      // Pairs are more specific than characters; an isolated character is all there is.
      const bool has_pair = (i > 0 && words_[i - 1].kind == Word::Kind::pair) ||
                            (i + 1 < words_.size() && words_[i + 1].kind == Word::Kind::pair);
      if (word.kind == Word::Kind::character && has_pair) continue;
      if (!word.capitals && (languages_of_function_word(word.text) & silent) != 0) continue;
      add_word(word, next_of(i));
    }
  }

  // Returns the plain word that follows a plain word.
  std::string next_of(std::size_t i) const {
    const auto plain = [](const Word& word) { return word.kind == Word::Kind::plain; };
    if (!plain(words_[i])) return {};
    const auto next = std::find_if(words_.begin() + static_cast<std::ptrdiff_t>(i) + 1, words_.end(), plain);
    return next == words_.end() ? std::string() : next->text;
  }

  void add_word(const Word& word, std::string next) {
    const auto [known, added] = index_.try_emplace({static_cast<char>(word.kind) + word.text}, groups_.size());
    if (!added) {
      groups_[known->second].count++;
      return;
    }
    TermGroup group;
    group.forms = forms_of(word, languages_.stemmed, stemmers_);
    if (may_be_misspelt(word)) group.typed = word.text;
    group.next = std::move(next);
    if (group.forms.empty()) {
      index_.erase(known);
    } else {
      groups_.push_back(std::move(group));
    }
  }

  const Languages& languages_;
  Stemmers& stemmers_;
  std::vector<Word> words_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<TermGroup> groups_;
};

void add_phrase(std::string_view text, std::vector<std::vector<std::string>>& phrases) {
  std::vector<std::string> phrase;
  for (Word& word : words_of(text.substr(0, limits::query_text_bytes_max), limits::query_terms_max)) {
    if (word.kind == Word::Kind::plain || word.kind == Word::Kind::character) phrase.push_back(std::move(word.text));
  }
  if (!phrase.empty()) phrases.push_back(std::move(phrase));
}

}  // namespace

std::vector<std::string> forms_of(const Word& word, const std::vector<std::string>& languages, Stemmers& stemmers) {
  std::vector<std::string> forms;
  for (const std::string& language : languages) {
    const auto stemmer = stemmers.try_emplace(language, language).first;
    for (const std::string& stem : stemmer->second.stems_of(word)) add_once(forms, stem_prefix + stem);
  }
  if (word.capitals && languages_of_function_word(word.text) != 0) add_once(forms, capitals_prefix + word.text);
  // getusername, written as one word, finds get_user_name, and vice versa.
  const bool one_word = word.kind == Word::Kind::plain || word.kind == Word::Kind::whole;
  if (word.kind == Word::Kind::run || (one_word && !forms.empty())) add_once(forms, whole_prefix + word.text);
  return forms;
}

QueryTerms query_terms(const LexicalQuery& query, const Languages& languages, Stemmers& stemmers) {
  QueryTerms terms;
  Collector collector(languages, stemmers);
  collector.read(query.text);
  for (std::size_t i = 0; i < query.phrases.size() && i < limits::query_phrases_max; i++) {
    add_phrase(query.phrases[i], terms.phrases);
    collector.read(query.phrases[i]);
  }
  terms.groups = collector.collect();
  if (terms.phrases.empty()) add_phrase(query.text, terms.whole_text);
  return terms;
}

}  // namespace muniment::retrieval
