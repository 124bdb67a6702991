// Compares statements.
#include "retrieval/answer/statement.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/limits.hpp"
#include "retrieval/lexical/terms.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t shared_words_min = 2;
constexpr std::array<std::string_view, 14> negations{"not",   "no",  "never", "nor", "cannot", "nicht", "kein",
                                                     "keine", "nie", "pas",   "non", "jamais", "nunca", "sin"};

bool negates(std::string_view word) {
  return word.ends_with("n't") || std::ranges::find(negations, word) != negations.end();
}

// Returns the words that begin with a capital and are not the first of a sentence.
std::vector<std::string_view> capitalised_in(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  std::vector<std::string_view> out;
  bool first = true;
  for (std::size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (!first && word.front() >= 'A' && word.front() <= 'Z') out.push_back(word);
    first = word.find_last_of(".!?:") == word.size() - 1;
    at = text.find_first_not_of(blanks, end);
  }
  return out;
}

std::size_t shared(const std::set<std::string>& a, const std::set<std::string>& b) {
  return static_cast<std::size_t>(std::ranges::count_if(a, [&](const std::string& word) { return b.contains(word); }));
}

std::set<std::string> both(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> out;
  std::ranges::set_intersection(a, b, std::inserter(out, out.end()));
  return out;
}

bool may_replace(const DatedStatement& newer, const DatedStatement& older, const std::set<std::string>& names) {
  if (older.time.empty() || newer.time <= older.time || newer.group != older.group) return false;
  if (older.trusted && !newer.trusted) return false;
  const std::set<std::string>&now = newer.statement.words, &before = older.statement.words;
  const std::set<std::string> asked = both(older.asked, before);
  const std::size_t kept = shared(asked, now), common = shared(before, now);
  if (shared(both(asked, names), now) < both(asked, names).size()) return false;
  return kept >= std::min(shared_words_min, std::max<std::size_t>(older.asked.size(), 1)) && asked.size() <= kept + 1 &&
         common >= shared_words_min && 2 * common >= before.size();
}

}  // namespace

Statement statement_of(std::string_view text, std::string_view language) {
  Stemmer stemmer(language == "none" || language.empty() ? "en" : language);
  Statement out;
  for (const std::string_view name : capitalised_in(text)) {
    for (const Word& word : words_of(name, limits::query_words_max)) {
      for (std::string& stem : stemmer.stems_of(word)) out.names.insert(std::move(stem));
    }
  }
  for (const Word& word : words_of(text, limits::query_words_max)) {
    if (word.kind != Word::Kind::plain && word.kind != Word::Kind::character) continue;
    const std::vector<std::string> stems = stemmer.stems_of(word);
    const std::string stem = !stems.empty() ? stems.front() : negates(word.for_stemmer()) ? "not" : "";
    if (stem.empty()) continue;
    out.key.append(out.key.empty() ? "" : " ").append(stem);
    out.words.insert(stem);
  }
  return out;
}

std::vector<PlacedStatement> newer_first(std::span<const DatedStatement> statements,
                                         std::set<std::string> asked_names) {
  for (const DatedStatement& one : statements)
    asked_names.insert(one.statement.names.begin(), one.statement.names.end());
  std::vector<std::optional<std::size_t>> newest(statements.size());
  for (std::size_t older = 0; older < statements.size(); ++older) {
    for (std::size_t newer = 0; newer < statements.size(); ++newer) {
      if (!may_replace(statements[newer], statements[older], asked_names)) continue;
      if (!newest[older] || statements[*newest[older]].time < statements[newer].time) newest[older] = newer;
    }
  }
  std::vector<PlacedStatement> placed;
  std::vector<bool> done(statements.size());
  for (std::size_t i = 0; i < statements.size(); ++i) {
    std::vector<std::size_t> chain;  // i and what replaces it, which is strictly newer: the chain ends
    for (std::optional<std::size_t> at = i; at && !done[*at]; at = newest[*at]) chain.push_back(*at);
    for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
      done[*at] = true;
      placed.push_back({*at, newest[*at]});
    }
  }
  return placed;
}

}  // namespace muniment::retrieval
