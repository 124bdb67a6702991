// A document on its way into a corpus: read, cut into chunks, hashed, and said as the event
// document.revised. Pure: what it costs to write files and to append is the caller's.
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
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {

// What its sender says of a document.
struct DocumentToIngest {
  std::string corpus;
  std::string id;
  std::string title;      // empty: from the document
  std::string mime_type;  // empty: told from its name and bytes
  std::vector<std::string> tags;
  std::string source;                     // empty: source_url, or the actor
  std::vector<std::string> sources;       // with those of what it was derived from
  std::vector<std::string> derived_from;  // pointers
  std::string source_url;
  std::optional<Time> timestamp;
  std::string trust = "untrusted";
  std::string label;     // the revision's name, where its sender gives one
  std::string previous;  // the revision that was current
};

// The same, read.
struct PreparedDocument {
  DocumentToIngest about;
  DocumentText text;
  Hash bytes_hash{};
  std::int64_t size_bytes = 0;
  Hash hash{};  // of the revision
  std::string revision;
  std::vector<Hash> chunk_hashes;
  std::string chunk_list;  // [[start, end, sha256, heading?], …], JSON
};

// SHA-256(the hash of its bytes ‖ the chunker's name)
Hash revision_hash(const Hash& bytes_hash, std::string_view chunker);

// Errors: those of read_document; invalid_argument for an id, a tag or a label that cannot be.
Result<PreparedDocument> prepare_document(DocumentToIngest about, std::string_view bytes, DocumentText text);
Status check_corpus_name(std::string_view corpus);

// Where its bytes lie.
struct DocumentPlace {
  Uuid artifact_id;
  std::int64_t start_byte = 0;
  std::optional<Uuid> text_artifact_id;
  std::optional<Uuid> chunks_artifact_id;
};

// The chunk list goes into the event up to this size, otherwise into an artifact.
inline constexpr std::size_t inline_chunk_list_bytes_max = 24 * 1024;

// The body of document.revised.
std::string revised_body(const PreparedDocument& document, const DocumentPlace& place);

}  // namespace muniment::retrieval
