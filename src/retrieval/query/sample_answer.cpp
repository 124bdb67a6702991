// Ranks the documents of the sample set.
#include "retrieval/query/sample_answer.hpp"

#include <algorithm>
#include <set>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "evidence/pointer.hpp"
#include "evidence/sample_set.hpp"
#include "retrieval/query/function_words.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {
namespace {

using Words = std::set<std::string>;

// "caches" and "cache" are equal.
void add_words(std::string_view line, Words& out) {
  for (std::string& word : words_of(line)) {
    if (word.size() > 3 && word.ends_with('s')) word.pop_back();
    out.insert(std::move(word));
  }
}

Words words_of_document(const evidence::SampleDocument& document) {
  Words words;
  std::string_view text = document.text();
  while (const auto line = take_line(text)) add_words(*line, words);
  return words;
}

// The query's words without function words; all of them if there are no others.
Words asked_words(std::string_view query) {
  Words all, out;
  add_words(query, all);
  for (const std::string& word : all) {
    if (!is_function_word(word, "en")) out.insert(word);
  }
  return out.empty() ? all : out;
}

std::string flat(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? ' ' : (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  return out;
}

bool passes(const evidence::SampleDocument& document, const Filter& filter) {
  const std::set<std::string> labels{
      "corpus:" + std::string(evidence::sample_corpus), "type:markdown", "trust:trusted", "source:muniment",
      "document:" + std::string(evidence::sample_corpus) + "/" + std::string(document.id)};
  const auto has = [&](const std::string& label) { return labels.contains(label); };
  const std::int64_t time = parse_time(document.recorded_at)->micros;
  return std::ranges::all_of(filter.all_of, [&](const auto& group) { return std::ranges::any_of(group, has); }) &&
         std::ranges::none_of(filter.none_of, has) && (!filter.after_us || time > *filter.after_us) &&
         (!filter.before_us || time < *filter.before_us);
}

Card card_of(const evidence::SampleDocument& document, double score, const std::vector<std::string>& words) {
  Card card;
  card.id = evidence::evidence_pointer(evidence::sample_corpus, document.id, "p0", document.revision);
  card.passage_id = card.id;
  card.document = document.id;
  card.corpus = evidence::sample_corpus;
  card.title = document.title;
  card.text = document.text();
  card.summary = snippet_of(card.text, words, limits::summary_bytes_max);
  card.anchors = {card.title};
  card.end = static_cast<std::int64_t>(card.text.size());
  card.source = {card.corpus, "sample", evidence::chunk_id_of(card.id), evidence::ByteSpan{0, card.end}};
  card.revision = document.revision;
  card.trust = "trusted";
  card.freshness = document.recorded_at;
  card.score = score;
  card.confidence = score;
  card.scores = {{"words", score}};
  return card;
}

}  // namespace

std::vector<Card> sample_cards(std::string_view query, const std::vector<std::string>& phrases, const Filter& filter) {
  const Words asked = asked_words(query);
  std::vector<Card> cards;
  for (const evidence::SampleDocument& document : evidence::sample_documents()) {
    const std::string text = flat(document.text());
    const bool has_phrases = std::ranges::all_of(
        phrases, [&](const std::string& phrase) { return text.find(flat(phrase)) != std::string::npos; });
    if (!has_phrases || !passes(document, filter)) continue;
    const Words words = words_of_document(document);
    const auto held = std::ranges::count_if(asked, [&](const std::string& word) { return words.contains(word); });
    if (held == 0 && (!asked.empty() || phrases.empty())) continue;
    const double score = asked.empty() ? 1.0 : static_cast<double>(held) / static_cast<double>(asked.size());
    cards.push_back(card_of(document, score, words_of(query)));
  }
  std::ranges::stable_sort(cards, std::greater<>{}, &Card::score);
  return cards;
}

}  // namespace muniment::retrieval
