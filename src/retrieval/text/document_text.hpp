// Converts a document's bytes to text and chunks. Pure: the same bytes, name and chunker version give the same text and
// spans on every machine, since revisions are hashes over them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "retrieval/text/unicode.hpp"

namespace muniment::retrieval {

enum class Format : std::uint8_t { text, markdown, code, html, json, jsonl, pdf };
std::string_view name_of(Format format);     // text, markdown, …
Format format_named(std::string_view name);  // text for an unknown name
std::string mime_type_of(Format format);

// The name and version of the conversion to chunks: part of a revision's hash. A change of a rule needs a new version,
// and re-chunking makes new revisions.
std::string_view chunker_identity();  // "chunk/1"

struct Chunk {
  std::int64_t start = 0;  // offset in the text, in bytes, at a character's edge
  std::int64_t end = 0;    // past its last byte
  std::string heading;     // its position: "Install › Linux", "class Appender › submit", "$.items[3]"; may be empty
};

struct DocumentText {
  Format format = Format::text;
  std::string language;  // ISO 639-1, or "none" for code, data and undetermined text
  std::string title;     // from the document itself, or its name; ≤ 200 bytes, whole graphemes
  // The UTF-8 text that the chunks are spans of. With `as_is`, it is byte for byte the document.
  std::string text;
  bool as_is = true;     // false: extracted (HTML, PDF) or converted from another encoding
  std::string encoding;  // as detected: UTF-8, UTF-16LE, windows-1252; "UTF-8 (damaged)" if U+FFFD replaces stray bytes
  std::vector<Chunk> chunks;  // in order, disjoint, non-empty; together all of the text except white space
                              // and the pictures of a notebook
};

// Returns whether the document is read directly (text, Markdown, code, JSON in UTF-8), without third-party parsers,
// which run in a separate process.
bool looks_plain(std::string_view bytes, std::string_view name, std::string_view mime_type);

// `name` is the document's path or id, for its extension. `mime_type` comes from the sender and may be empty. Linear in
// the input, except for PDF, where poppler needs an external time limit. Errors: invalid_argument for binary content,
// with its kind; too_large for more than limits::document_text_bytes_max; corrupt for a PDF that poppler cannot read.
Result<DocumentText> read_document(std::string_view bytes, std::string_view name, std::string_view mime_type);

// Returns the text of a chunk for an index. For JSON, strings have their escapes resolved and punctuation is removed,
// so that "first line
// second" is three words; other formats are unchanged. Spans remain spans of the text.
std::string index_text_of(Format format, std::string_view chunk);

// Makes the libraries load what they read from files (the C library's character conversions and time zone, which
// poppler uses). Call it before entering a sandbox: afterwards read_document opens no file
// except poppler's tables of fonts.
void load_readers();

// Returns the sentences of a text in order, without white space around them. A line ends a sentence too, unless it is a
// wrapped one. A sentence longer than limits::sentence_bytes_max is cut at its best breaks, so that a script without
// sentence marks has pieces too.
std::vector<Span> sentences_of(std::string_view text);

// Returns the first sentences of a chunk, at most `bytes_max` bytes, cut between graphemes, with white space collapsed.
std::string summary_of(std::string_view text, std::size_t bytes_max);

// Returns the part of a chunk nearest to the query's words (most distinct ones), cut likewise.
std::string snippet_of(std::string_view text, const std::vector<std::string>& words, std::size_t bytes_max);

}  // namespace muniment::retrieval
