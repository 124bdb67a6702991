// Cards, the results of a query: a pointer with a summary and its origin. A client gets the verified text by resolving
// the pointer; the summary of a short passage shows it whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "evidence/evidence_id.hpp"
#include "retrieval/engine/engine.hpp"
#include "retrieval/plan/markup.hpp"
#include "store/read/corpus_rows.hpp"

namespace muniment::retrieval {

struct Card {
  std::string id;   // the passage's ev:// pointer
  std::string uri;  // aether:// URI of a capsule's document; empty: none
  std::string document;
  std::string corpus;
  std::string title;
  std::string summary;  // taken from the part of the passage nearest to the query; ≤ limits::summary_bytes_max
  std::vector<std::string> anchors;  // its headings in the document
  std::int64_t start = 0;            // its span in the document's text
  std::int64_t end = 0;
  std::string revision;
  std::string trust;
  std::string freshness;    // the document's own time
  std::string known_since;  // the same, but not later than its recording: a source may state any time
  bool current = true;
  std::optional<std::string> source_url;
  double score = 0;
  double confidence = 0;
  std::vector<std::pair<std::string, double>> scores;  // by lane that found it
  std::string origin;                                  // origin of an event; empty: a document
  std::string type;                                    // type of an event; empty: a document
  std::string passage_id;  // the pointer to the text itself, if `id` is an event of one passage; otherwise `id`
  evidence::EvidenceSource source;  // the kind and hash of `id` as evidence
  std::string text;                 // the passage, for packs; not part of an answer
  std::string language;             // ISO 639-1 or "none"
  bool after_question = false;      // it is in the answer because it follows a question
  bool whole = false;               // a short document of one passage: a fact
  std::string named_source;         // the name that the document's source was given; empty: none
  std::string replaces;             // time of the revision that it replaced, for a fact; empty: none
  std::string newer;                // pointer of a newer fact of the answer that may replace it; empty: none
  std::string expires_at;           // time from which queries do not find it; empty: none
};

// Returns the pointer to a chunk. For an event with one passage, it is the event's pointer unless `exact`.
std::string pointer_of(const store::ChunkInDocument& item, bool exact = false);

// Returns the facts of a document's chunks, for filters.
Facts facts_of(const store::DocumentRow& document, const std::string& owner);

Card make_card(const store::ChunkInDocument& item, std::string text, const Candidate& candidate,
               const std::vector<std::string>& words);

// Returns the words of a text in lower case.
std::vector<std::string> words_of(std::string_view query);
// Returns the phrases and words of a query, to choose the part of a passage for the summary.
std::vector<std::string> words_to_show(const Markup& markup);

void write_card(json::Writer& out, const Card& card, bool with_scores);

}  // namespace muniment::retrieval
