// Makes and writes cards.
#include "retrieval/query/card.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "evidence/pointer.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {

std::string pointer_of(const store::ChunkInDocument& item, bool exact) {
  if (item.document.of_run()) {
    const auto passage = exact || item.document.chunks > 1 ? std::optional(item.chunk.number) : std::nullopt;
    return evidence::event_pointer(item.document.document, passage, item.document.revision);
  }
  return evidence::evidence_pointer(item.document.corpus, item.document.document,
                                    "p" + std::to_string(item.chunk.number), item.document.revision);
}

Facts facts_of(const store::DocumentRow& document, const std::string& owner) {
  Facts facts;
  facts.labels = {"corpus:" + document.corpus,    "document:" + document.corpus + "/" + document.document,
                  "type:" + document.format,      "trust:" + document.trust,
                  "source:" + document.source,    "owner:" + owner,
                  "language:" + document.language};
  for (const std::string& tag : document.tags) facts.labels.push_back("tag:" + tag);
  for (const std::string& source : document.sources) {
    if (source != document.source) facts.labels.push_back("source:" + source);
  }
  if (document.of_run()) {
    facts.labels.push_back("run:" + std::string(document.run_id()));
    facts.labels.push_back("origin:" +
                           std::string(events::name_of(document.origin.value_or(events::Origin::reported))));
  }
  facts.time_us = document.document_time.micros;
  facts.valid_from = document.seq;
  return facts;
}

Card make_card(const store::ChunkInDocument& item, std::string text, const Candidate& candidate,
               const std::vector<std::string>& words) {
  Card card;
  card.id = pointer_of(item);
  card.passage_id = pointer_of(item, true);
  card.document = item.document.document;
  card.corpus = item.document.corpus;
  card.title = item.document.title;
  if (item.document.of_run()) {
    card.type = item.document.format;
    card.origin = events::name_of(item.document.origin.value_or(events::Origin::reported));
    card.title = card.title.empty() ? card.type : card.type + " " + card.title;
  }
  card.summary = snippet_of(index_text_of(format_named(item.document.format), text), words, limits::summary_bytes_max);
  if (!item.chunk.heading.empty()) card.anchors.push_back(item.chunk.heading);
  card.start = item.chunk.start_byte;
  card.end = item.chunk.end_byte;
  card.source = {card.corpus, item.document.chunker, evidence::chunk_id_of(card.id),
                 evidence::ByteSpan{card.start, card.end}};
  if (card.id != card.passage_id) card.source = {card.corpus, "event", card.source.chunk_id, {}};
  card.revision = item.document.revision;
  card.trust = item.document.trust;
  card.freshness = format_time(item.document.document_time);
  card.known_since = format_time(std::min(item.document.document_time, item.document.recorded_at));
  card.current = item.document.current();
  card.source_url = item.document.source_url;
  card.score = candidate.score;
  card.confidence = std::clamp(candidate.confidence, 0.0, 1.0);
  card.scores = candidate.lanes;
  card.whole = !item.document.of_run() && item.document.chunks == 1 && text.size() <= limits::summary_bytes_max;
  if (!item.document.of_run() && !item.document.source.starts_with("uid:")) card.named_source = item.document.source;
  if (item.document.expires_at) card.expires_at = format_time(*item.document.expires_at);
  card.text = std::move(text);
  card.language = item.document.language;
  return card;
}

std::vector<std::string> words_of(std::string_view query) {
  constexpr std::size_t words_max = 64;
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(query) + ' ') {
    const bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                        static_cast<unsigned char>(c) >= 0x80;
    if (letter) {
      word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!word.empty()) {
      if (words.size() < words_max) words.push_back(word);
      word.clear();
    }
  }
  return words;
}

std::vector<std::string> words_to_show(const Markup& markup) {
  std::vector<std::string> shown = markup.phrases;
  for (const std::string& phrase : markup.phrases) {
    for (std::string& word : words_of(phrase)) shown.push_back(std::move(word));
  }
  for (std::string& word : words_of(markup.text)) shown.push_back(std::move(word));
  return shown;
}

void write_card(json::Writer& out, const Card& card, bool with_scores) {
  out.begin_object().member("id", card.id).member("evidence_id", evidence::evidence_id(card.source).text());
  out.member("corpus_id", card.source.corpus_id)
      .member("index_id", card.source.index_id)
      .member("chunk_id", card.source.chunk_id);
  if (!card.uri.empty()) out.member("uri", card.uri);
  out.member("corpus", card.corpus).member("document", card.document).member("title", card.title);
  out.member("summary", card.summary)
      .member("anchors", card.anchors)
      .key("confidence")
      .number(card.confidence)
      .key("score")
      .number(card.score);
  if (with_scores) {
    out.key("scores").begin_object();
    for (const auto& [lane, score] : card.scores) out.key(lane).number(score);
    out.end_object();
  }
  out.member("freshness", card.freshness).member("current", card.current).member("revision", card.revision);
  if (!card.named_source.empty()) out.member("source", card.named_source);
  if (!card.replaces.empty()) out.member("replaces", card.replaces);
  if (!card.newer.empty()) out.member("newer", card.newer);
  if (!card.expires_at.empty()) out.member("expires_at", card.expires_at);
  out.key("span").begin_object().member("start", card.start).member("end", card.end).end_object();
  out.member("trust", card.trust);
  if (!card.origin.empty()) out.member("origin", card.origin).member("type", card.type);
  if (card.source_url) out.member("sourceUrl", *card.source_url);
  out.end_object();
}

}  // namespace muniment::retrieval
