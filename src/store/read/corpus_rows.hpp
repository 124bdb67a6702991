// Defines the rows derived from changes of documents (migrations/0008_corpus.sql) as plain structs.
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

// Corpus of the events of indexed runs: its documents are events. Clients cannot ingest into it.
inline constexpr std::string_view run_corpus = "run";

class EventText;

struct CorpusRow {
  std::string corpus;
  std::string owner;  // the actor of its first document
  std::int64_t first_seq = -1;
  std::int64_t last_seq = -1;  // last event that changed it
  std::int64_t documents = 0;  // number of current documents; set only if a list requests it
  std::int64_t chunks = 0;
};

struct ChunkRow {
  std::int64_t chunk_id = 0;
  std::int64_t seq = -1;  // seq of its document's revision
  std::int64_t number = 0;
  std::int64_t start_byte = 0;  // offset in the document's text
  std::int64_t end_byte = 0;
  Hash hash{};
  std::string heading;
};

// A revision. In the corpus `run` it is an event: its document is <run_id>#e<run_seq> and its format is the event's
// type.
struct DocumentRow {
  std::int64_t seq = -1;  // its document.revised event, or the event itself
  std::string corpus;
  std::string document;
  std::string revision;
  Hash hash{};
  Uuid artifact_id;             // for an event: zeros
  std::int64_t start_byte = 0;  // offset in the artifact
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
  std::optional<std::string> owner;  // owner of the run, for an event
  std::optional<events::Origin> origin;
  // Members of its event that the table does not hold: they are set in rows that are held against their events.
  std::string previous{};  // name of the revision that it replaced; empty: none
  std::vector<std::string> derived_from{};
  std::optional<Time> expires_at{};  // queries do not find it from then on
  std::optional<Time> review_at{};   // it is to be checked then
  // The reason for which the row is not what its event recorded: its text must not be used; empty: it is.
  std::string differs{};
  bool mended = false;  // the table held other values than its event, which are in this row

  bool current() const { return !valid_to; }
  bool of_run() const { return corpus == run_corpus; }
  std::string_view run_id() const {
    return std::string_view(document).substr(0, document.find('#'));
  }  // id of the run, for an event
  // Artifact that holds the text, and the offset of the text in it.
  const Uuid& text_artifact() const { return text_artifact_id ? *text_artifact_id : artifact_id; }
  std::int64_t text_start() const { return text_artifact_id ? 0 : start_byte; }
};

// The effect of one event on documents. A batch of them is applied in order.
struct Revised {
  DocumentRow row;               // first_chunk is assigned when the row is written
  std::vector<ChunkRow> chunks;  // ids are assigned likewise
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
  std::optional<std::string> owner;  // owner of the affected corpora; nullopt: all
};
// An erasure of an event. If the event was a revision, its passages are deleted and its row is cleared.
struct Erased {
  std::int64_t seq = -1;  // seq of the event.redacted
  std::int64_t erased_seq = -1;
};
// An event without a body, of which it is unknown whether the corpus `run` contained it. No change.
struct Untold {
  std::int64_t seq = -1;
};
// The parts of a pointer to a document.
struct Citation {
  std::string corpus;
  std::string document;
  std::string revision;
  std::int64_t number = -1;  // number of a chunk; -1: none
};
struct FeedbackRow {
  std::int64_t seq = -1;
  std::string pointer;
  std::optional<Citation> passage;  // if the pointer names a passage
  double value = 0;
  std::string actor;
};
using CorpusChange = std::variant<Revised, Retracted, Revoked, Erased, Untold, FeedbackRow>;

// A chunk with its document and the file of its text, from which a card is made.
struct ChunkInDocument {
  ChunkRow chunk;
  DocumentRow document;
  std::string path;                               // path of the file, relative to the artifact root
  std::shared_ptr<const EventText> event_text{};  // for an event, instead of a file; nullptr: it is unavailable
};

// The target of a pointer to a document, as far as it was found.
struct CitedDocument {
  std::string owner;                    // owner of the corpus; empty: no such corpus
  std::optional<std::string> current;   // name of the document's current revision
  std::optional<DocumentRow> document;  // the revision
  std::optional<ChunkRow> chunk;        // if a chunk was requested
  std::string path;                     // path of the file that holds its text
  bool erased = false;                  // the file was erased with its artifact
};

}  // namespace muniment::store
