// Cards: what a retrieval answers. A pointer, what it is about, and where it comes from; never the text
// itself, which its reader gets by resolving the pointer.
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
#include "store/files/artifact_files.hpp"
#include "store/read/corpus_rows.hpp"

namespace muniment::retrieval {

struct Card {
  std::string id;  // the ev:// pointer of the passage
  std::string document;
  std::string corpus;
  std::string title;
  std::string summary;               // of the passage, nearest to the query; ≤ limits::summary_bytes_max
  std::vector<std::string> anchors;  // where it stands in its document
  std::int64_t start = 0;            // its span of the document's text
  std::int64_t end = 0;
  std::string revision;
  std::string trust;
  std::string freshness;  // the document's own time
  bool current = true;
  std::optional<std::string> source_url;
  double score = 0;
  double confidence = 0;
  std::vector<std::pair<std::string, double>> scores;  // of each lane that found it
  std::string origin;                                  // of an event; empty: it is a document
  std::string type;                                    // likewise
  std::string passage_id;  // the pointer to the text itself, where `id` is an event of one passage; otherwise `id`
  evidence::EvidenceSource source;  // what evidence of `id` is
  std::string text;                 // the passage; for packs, never in an answer
};

// The pointer to a chunk. An event that is one passage is pointed at itself, unless `exact`.
std::string pointer_of(const store::ChunkInDocument& item, bool exact = false);

// Reads the passage and compares it with its hash. Errors: corrupt, not_found (then it is no hit).
Result<std::string> read_passage(const store::ChunkInDocument& item, store::ArtifactFiles& files);

Card make_card(const store::ChunkInDocument& item, std::string text, const Candidate& candidate,
               const std::vector<std::string>& words);

// The words of a query, lower-case, for finding the part of a passage that a summary shows.
std::vector<std::string> words_of(std::string_view query);

void write_card(json::Writer& out, const Card& card, bool with_scores);

}  // namespace muniment::retrieval
