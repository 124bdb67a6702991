// The rows that follow from what happens to documents (migrations/0008_corpus.sql), as plain structs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "events/event.hpp"

namespace muniment::store {

// The corpus of what happened in runs: its documents are events. Nobody can ingest into it.
inline constexpr std::string_view run_corpus = "run";

class EventText;

struct CorpusRow {
  std::string corpus;
  std::string owner;  // the actor of its first document
  std::int64_t first_seq = -1;
  std::int64_t last_seq = -1;  // the last event that changed it
  std::int64_t documents = 0;  // current ones; counted only where a list asks for it
  std::int64_t chunks = 0;
};

struct ChunkRow {
  std::int64_t chunk_id = 0;
  std::int64_t seq = -1;  // of its document's revision
  std::int64_t number = 0;
  std::int64_t start_byte = 0;  // of the document's text
  std::int64_t end_byte = 0;
  Hash hash{};
  std::string heading;
};

// A revision; in the corpus run, an event: its document is <run_id>#e<run_seq>, its format the type.
struct DocumentRow {
  std::int64_t seq = -1;  // its document.revised event, or itself
  std::string corpus;
  std::string document;
  std::string revision;
  Hash hash{};
  Uuid artifact_id;             // of an event: zeros
  std::int64_t start_byte = 0;  // of the artifact
  std::int64_t size_bytes = 0;
  std::optional<Uuid> text_artifact_id;
  std::string mime_type;
  std::string format;
  std::string language;
  std::string title;
  std::vector<std::string> tags;
  std::string source;
  std::vector<std::string> sources;
  std::optional<std::string> source_url;
  std::string trust;  // trusted, untrusted, quarantined
  Time document_time;
  Time recorded_at;
  std::string chunker;
  std::int64_t first_chunk = 0;
  std::int64_t chunks = 0;
  std::optional<std::int64_t> valid_to;
  std::optional<std::string> ended_by;  // revised, retracted, revoked, erased
  std::optional<std::int64_t> removed_at;
  std::optional<std::string> owner;  // of an event: whose run it is
  std::optional<events::Origin> origin;

  bool current() const { return !valid_to; }
  bool of_run() const { return corpus == run_corpus; }
  std::string_view run_id() const { return std::string_view(document).substr(0, document.find('#')); }  // of an event
  // Where its text begins in the artifact that holds it.
  const Uuid& text_artifact() const { return text_artifact_id ? *text_artifact_id : artifact_id; }
  std::int64_t text_start() const { return text_artifact_id ? 0 : start_byte; }
};

// What one event does to documents; a batch of them is applied in order.
struct Revised {
  DocumentRow row;               // first_chunk is given out when it is written
  std::vector<ChunkRow> chunks;  // likewise their ids
  std::string actor;
};
struct Retracted {
  std::int64_t seq = -1;
  std::string corpus;
  std::string document;
};
struct Revoked {
  std::int64_t seq = -1;
  std::string source;
  std::optional<std::string> owner;  // whose corpora it concerns; nullopt: all
};
// An event was erased. Where it was a revision's, its passages go, and its row says nothing any more but that it was.
struct Erased {
  std::int64_t seq = -1;  // of the event.redacted
  std::int64_t erased_seq = -1;
};
// An event of which nothing is told any more, so that nobody can say whether the corpus run had it. Nothing is done.
struct Untold {
  std::int64_t seq = -1;
};
// What a pointer to a document says.
struct Citation {
  std::string corpus;
  std::string document;
  std::string revision;
  std::int64_t number = -1;  // of a chunk; -1: none
};
struct FeedbackRow {
  std::int64_t seq = -1;
  std::string pointer;
  std::optional<Citation> passage;  // what it names, where that is a passage
  double value = 0;
  std::string actor;
};
using CorpusChange = std::variant<Revised, Retracted, Revoked, Erased, Untold, FeedbackRow>;

// A chunk with its document and the file that holds its text: what a card is made of.
struct ChunkInDocument {
  ChunkRow chunk;
  DocumentRow document;
  std::string path;                               // of the file, relative to the artifact root
  std::shared_ptr<const EventText> event_text{};  // of an event, in place of a file; nullptr: it cannot be had
};

// What a pointer to a document names: its corpus is there, the rest as far as it was found.
struct CitedDocument {
  std::string owner;                    // of the corpus; empty: there is no such corpus
  std::optional<std::string> current;   // the current revision of the document
  std::optional<DocumentRow> document;  // the revision
  std::optional<ChunkRow> chunk;        // where a chunk was asked for
  std::string path;                     // of the file that holds its text
  bool erased = false;                  // that file was, with its artifact
};

}  // namespace muniment::store
