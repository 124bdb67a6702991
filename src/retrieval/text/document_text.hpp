// From a document's bytes to text and chunks. Pure: the same bytes, name and version of the chunker
// give the same text and the same spans, always and on every machine, since revisions are hashes over them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

enum class Format : std::uint8_t { text, markdown, code, html, json, jsonl, pdf };
std::string_view name_of(Format format);     // text, markdown, …
Format format_named(std::string_view name);  // text for a name that is none

// The name and version of how bytes become chunks: part of a revision's hash. A change of a rule is a
// new version, and re-chunking makes new revisions.
std::string_view chunker_identity();  // "chunk/1"

struct Chunk {
  std::int64_t start = 0;  // of the text, in bytes, on a character's edge
  std::int64_t end = 0;    // past its last byte
  std::string heading;  // where it stands: "Install › Linux", "class Appender › submit", "$.items[3]"; may be empty
};

struct DocumentText {
  Format format = Format::text;
  std::string language;  // ISO 639-1, or "none" for code, data and what cannot be told
  std::string title;     // from the document itself, or its name; ≤ 200 bytes, whole graphemes
  // The text that chunks are spans of, UTF-8. Where `as_is`, it is byte for byte the document.
  std::string text;
  bool as_is = true;  // false: extracted (HTML, PDF) or converted from another encoding
  std::string
      encoding;  // as found: UTF-8, UTF-16LE, windows-1252, "UTF-8 (damaged)" where U+FFFD stands for stray bytes
  std::vector<Chunk> chunks;  // in order, never overlapping, never empty; together all text but white space
};

// Whether it will be read as what it is (text, Markdown, code, JSON in UTF-8): without foreign parsers, which
// are for a process of their own.
bool looks_plain(std::string_view bytes, std::string_view name, std::string_view mime_type);

// `name`: the document's path or id, for its extension. `mime_type`: what the sender says, may be empty.
// Errors: invalid_argument for binary content, saying what it looks like; too_large for more than
// limits::document_text_bytes_max; corrupt for a PDF that poppler cannot read. Linear in the input, but for PDF:
// poppler takes the time that it takes, and wants a limit around it.
Result<DocumentText> read_document(std::string_view bytes, std::string_view name, std::string_view mime_type);

// What an index should see of a chunk. JSON's strings with their escapes resolved and its punctuation gone, so
// that "first line\nsecond" is three words; every other format as it is. Spans stay spans of the text.
std::string index_text_of(Format format, std::string_view chunk);

// Has the libraries load what they read from files (the C library's character conversions and time zone,
// which poppler asks for). Call it before a process locks itself in: afterwards read_document opens nothing.
void load_readers();

// The first sentences of a chunk, at most `bytes_max` bytes, cut between graphemes, white space collapsed.
std::string summary_of(std::string_view text, std::size_t bytes_max);

// The part of a chunk that is nearest to the query's words (most distinct of them), cut likewise.
std::string snippet_of(std::string_view text, const std::vector<std::string>& words, std::size_t bytes_max);

}  // namespace muniment::retrieval
