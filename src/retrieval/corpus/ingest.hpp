// Prepares a document for a corpus: reads it, splits it into chunks, hashes it, and writes the body of
// document.revised. Pure: the caller writes files and appends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "retrieval/query/card.hpp"
#include "retrieval/query/query_plan.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {

// The sender's description of a document.
struct DocumentToIngest {
  std::string corpus;
  std::string id;
  std::string title;      // empty: taken from the document
  std::string mime_type;  // empty: detected from its name and bytes
  std::string language;   // ISO 639 or "none"; empty: detected
  std::vector<std::string> tags;
  std::string source;                     // empty: source_url, or the actor
  std::vector<std::string> sources;       // its source and those of the documents it was derived from
  std::vector<std::string> derived_from;  // pointers
  std::string source_url;
  std::optional<Time> timestamp;
  std::optional<Time> expires_at;
  std::optional<Time> review_at;
  std::string trust = "untrusted";
  std::string label;     // name of the revision, if the sender gives one
  std::string previous;  // name of the revision that was current
};

// A document that was read and checked.
struct PreparedDocument {
  DocumentToIngest about;
  DocumentText text;
  Hash bytes_hash{};
  std::int64_t size_bytes = 0;
  Hash hash{};  // hash of the revision
  std::string revision;
  std::vector<Hash> chunk_hashes;
  std::string chunk_list;  // JSON: [[start, end, sha256, heading?], …]
};

// Returns SHA-256(the hash of its bytes ‖ the chunker's name).
Hash revision_hash(const Hash& bytes_hash, std::string_view chunker);

// Reads and checks a document. Errors: those of read_document; invalid_argument for an invalid id, tag or label.
Result<PreparedDocument> prepare_document(DocumentToIngest about, std::string_view bytes, DocumentText text);
Status check_corpus_name(std::string_view corpus);

// A search for documents of its corpus that state the same as a fact, a short document of one passage.
struct FactSearch {
  Question question;
  std::string key;  // of its statement
  std::string document;
};
// Returns nullopt for a document that is no fact.
std::optional<FactSearch> search_of_fact(const PreparedDocument& document, std::string_view bytes);
// Returns the pointers of the other documents that state the same.
std::vector<std::string> equal_facts(const FactSearch& search, const std::vector<Card>& cards);

// The place of the document's bytes: an artifact, or the frame of a capsule that has this description.
struct DocumentPlace {
  bool in_frame = false;  // of a capsule, with the bytes; otherwise in the artifact
  Uuid artifact_id;
  std::int64_t start_byte = 0;
  std::optional<Uuid> text_artifact_id;
  std::optional<Uuid> chunks_artifact_id;
};

// A chunk list up to this size is part of the event; a longer one is an artifact.
inline constexpr std::size_t inline_chunk_list_bytes_max = 24 * 1024;

// Returns the body of document.revised.
std::string revised_body(const PreparedDocument& document, const DocumentPlace& place);

}  // namespace muniment::retrieval
