// Pointers: typed references, as text and parsed.
//
//   artifact://<run>/<artifact_id>[#b<start>-<end>]      bytes start … end-1
//   manifest://<id>    snap://<run>/<seq>    run://<id>
//   log://runs/<run>/events    log://validation    log://metrics
//   ev://<corpus>/<document>#<fragment>?v=<revision>     ?v= follows the fragment
//   ev://run/<run>#e<run_seq>[.<n>]?v=<revision>         an event, or passage n of its text
//
// Nothing is normalised: the text of a pointer is hashed as the client wrote it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace muniment::evidence {

inline constexpr std::size_t pointer_bytes_max = 2'048;  // pointer.pointer
inline constexpr std::size_t revision_digits = 16;       // hex digits of a SHA-256 in an ev:// pointer

enum class PointerKind : std::uint8_t { artifact, manifest, snapshot, run, log, evidence };
std::string_view name_of(PointerKind kind);  // artifact, manifest, …

struct ByteSpan {
  std::int64_t start = 0;
  std::int64_t end = 0;  // exclusive
};

struct Pointer {
  PointerKind kind = PointerKind::artifact;
  std::string text;
  std::string run_id;                   // artifact, snapshot, run, log of a run, ev://run/…; otherwise empty
  Uuid id;                              // artifact, manifest
  std::optional<ByteSpan> span;         // artifact
  std::int64_t seq = -1;                // snapshot; for ev:// the n of #p<n> and #e<n>
  std::optional<std::int64_t> passage;  // n of #e<run_seq>.<n>
  std::string corpus;                   // evidence
  std::string document;                 // evidence, percent-decoded
  std::string fragment;                 // evidence: p3, b0-10, e17, e17.2
  std::string revision;                 // evidence; empty: absent

  // Returns the pointer with the one spelling of its id or document that all equal pointers share.
  Pointer canonical() const;
  // Returns the name of the target: "r1/0190…", "0190…", "r1/918".
  std::string name() const;
  // Returns the pointer's text without the span. Damage to a file affects every pointer into it, but a passage of a
  // document has its own hash.
  std::string_view whole() const {
    return kind == PointerKind::evidence ? std::string_view(text) : std::string_view(text).substr(0, text.find('#'));
  }
};

// "b10-20" → 10, 20
std::optional<ByteSpan> parse_span(std::string_view fragment);

// Returns ev://<corpus>/<document>#<fragment>?v=<revision>, percent-encoded for the parser.
std::string evidence_pointer(std::string_view corpus, std::string_view document, std::string_view fragment,
                             std::string_view revision);

// A document of a capsule: aether://<collection>/<relative_path>, percent-encoded like an ev:// pointer.
inline constexpr std::string_view document_scheme = "aether://";
std::string document_uri(std::string_view corpus, std::string_view document);

struct DocumentName {
  std::string corpus;
  std::string document;
};
// Parses an aether:// URI. Errors: invalid_argument.
Result<DocumentName> parse_document_uri(std::string_view uri);

// Returns the pointer to an event of a run; `document` is <run>#e<run_seq>. `passage` is the number of a passage of the
// event's text; nullopt: the event itself.
std::string event_pointer(std::string_view document, std::optional<std::int64_t> passage, std::string_view revision);

// Parses a pointer. Errors: invalid_argument, with the part that does not parse.
Result<Pointer> parse_pointer(std::string_view text);

// A citation [ref:POINTER] in a draft.
struct Citation {
  std::size_t begin = 0;  // offset of "[ref:" in the draft
  std::size_t end = 0;    // offset after its "]"
  std::string pointer;
};
std::vector<Citation> find_citations(std::string_view draft);

}  // namespace muniment::evidence
