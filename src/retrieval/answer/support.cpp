// Compares claims with passages by their words and numbers.
#include "retrieval/answer/support.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "base/limits.hpp"
#include "retrieval/answer/question_words.hpp"
#include "retrieval/lexical/words.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {
namespace {

constexpr double carried_share = .7;

std::set<std::string> numbers_of(std::string_view text) {
  std::set<std::string> numbers;
  for (Word& word : words_of(text, limits::query_words_max)) {
    if (word.kind == Word::Kind::plain && word.text.find_first_of("0123456789") != std::string::npos)
      numbers.insert(std::move(word.text));
  }
  return numbers;
}

}  // namespace

std::optional<Span> carried_by(std::string_view claim, const AnswerSource& source) {
  QuestionWords words(claim, {source.language});
  std::string whole(source.text);
  whole.append("\n").append(source.title).append("\n").append(source.heading);
  const std::vector<bool> found = words.found_in(whole, source.language);
  const auto count = static_cast<double>(std::ranges::count(found, true));
  if (words.size() == 0 || count < carried_share * static_cast<double>(words.size())) return std::nullopt;
  const std::set<std::string> claimed = numbers_of(claim), known = numbers_of(whole);
  if (!std::ranges::includes(known, claimed)) return std::nullopt;
  std::optional<Span> best;
  std::ptrdiff_t most = -1;
  for (const Span span : sentences_of(source.text)) {
    const auto here = std::ranges::count(words.found_in(piece_of(source.text, span), source.language), true);
    if (here > most) most = here, best = span;
  }
  return best;
}

}  // namespace muniment::retrieval
