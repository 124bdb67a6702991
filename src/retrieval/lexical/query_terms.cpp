// Converts a query to groups of terms and phrases.
#include "retrieval/lexical/query_terms.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/limits.hpp"

namespace muniment::retrieval {
namespace {

void add_once(std::vector<std::string>& list, std::string item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(std::move(item));
}

class Collector {
 public:
  Collector(const std::vector<std::string>& languages, std::map<std::string, Stemmer, std::less<>>& stemmers)
      : languages_(languages), stemmers_(stemmers) {}

  void add(std::string_view text) {
    std::vector<Word> words = words_of(text.substr(0, limits::query_text_bytes_max), limits::query_words_max);
    for (std::size_t i = 0; i < words.size(); i++) {
      // Pairs are more specific than characters; an isolated character is all there is.
      const bool has_pair = (i > 0 && words[i - 1].kind == Word::Kind::pair) ||
                            (i + 1 < words.size() && words[i + 1].kind == Word::Kind::pair);
      if (words[i].kind == Word::Kind::character && has_pair) continue;
      add_word(words[i]);
    }
  }

  std::vector<TermGroup> take() { return std::move(groups_); }

 private:
  void add_word(const Word& word) {
    const auto [known, added] = index_.try_emplace({static_cast<char>(word.kind) + word.text}, groups_.size());
    if (!added) {
      groups_[known->second].count++;
      return;
    }
    TermGroup group;
    for (const std::string& language : languages_) {
      const auto stemmer = stemmers_.try_emplace(language, language).first;
      for (const std::string& stem : stemmer->second.stems_of(word)) add_once(group.forms, stem_prefix + stem);
    }
    // getusername, written as one word, finds get_user_name, and vice versa.
    const bool one_word = word.kind == Word::Kind::plain || word.kind == Word::Kind::whole;
    if (one_word && !group.forms.empty()) add_once(group.forms, whole_prefix + word.text);
    if (group.forms.empty()) {
      index_.erase(known);
    } else {
      groups_.push_back(std::move(group));
    }
  }

  const std::vector<std::string>& languages_;
  std::map<std::string, Stemmer, std::less<>>& stemmers_;
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

QueryTerms query_terms(const LexicalQuery& query, const std::vector<std::string>& languages,
                       std::map<std::string, Stemmer, std::less<>>& stemmers) {
  QueryTerms terms;
  Collector collector(languages, stemmers);
  collector.add(query.text);
  for (std::size_t i = 0; i < query.phrases.size() && i < limits::query_phrases_max; i++) {
    add_phrase(query.phrases[i], terms.phrases);
    collector.add(query.phrases[i]);
  }
  terms.groups = collector.take();
  if (terms.phrases.empty()) add_phrase(query.text, terms.whole_text);
  return terms;
}

}  // namespace muniment::retrieval
