// Converts bytes to UTF-8. A byte order mark decides; otherwise strict UTF-8 is tried, which other encodings
// practically never satisfy by chance; then UTF-16 and UTF-32 without a mark, by the places of their NULs; binary
// content is refused; a guess comes last.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment::retrieval {

struct Decoded {
  std::string text;
  std::string
      encoding;  // as detected: UTF-8, UTF-16LE, windows-1252 …; "UTF-8 (damaged)": U+FFFD replaces invalid bytes
  bool as_is = true;  // the text is byte for byte the document
};

// `declared` is a charset that the document or its sender names, used if the bytes are not UTF-8; may be empty. Errors:
// invalid_argument for binary content, too_large.
Result<Decoded> decode(std::string_view bytes, std::string_view declared);

// Returns whether an escape sequence of ISO-2022-JP or ISO-2022-KR selects a character set.
bool has_charset_escape(std::string_view bytes);

// Returns the percentage of the text's characters that are unassigned, replacement characters (U+FFFD) or C1 controls,
// without white space. Looks at the first limits::encoding_sample_bytes_max.
std::size_t unreadable_percent(std::string_view text);

// Returns the encoding that a byte order mark of UTF-16 or UTF-32 names; empty if there is none.
std::string_view marked_encoding(std::string_view bytes);

// Returns the encoding of UTF-16 or UTF-32 without a mark: the one in which every unit is a character that occurs in
// text. Empty without NULs, and if there is none. Looks at the first limits::encoding_sample_bytes_max.
std::string_view wide_encoding(std::string_view bytes);

// Returns the kind of the bytes by their beginning ("an ELF executable"); empty if unknown.
std::string_view binary_kind(std::string_view bytes);

}  // namespace muniment::retrieval
