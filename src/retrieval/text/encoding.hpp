// From bytes to UTF-8. A byte order mark is believed; then strict UTF-8 is tried, which other encodings
// practically never satisfy by chance; then UTF-16 and UTF-32 without a mark, by where their NULs are; what is
// binary is refused; and only then is a guess made.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment::retrieval {

struct Decoded {
  std::string text;
  std::string
      encoding;       // as found: UTF-8, UTF-16LE, windows-1252 …; "UTF-8 (damaged)": U+FFFD stands for what was none
  bool as_is = true;  // the text is byte for byte the document
};

// `declared`: a charset that the document or its sender names, believed where the bytes are not UTF-8; may be empty.
// Errors: invalid_argument for binary content, too_large.
Result<Decoded> decode(std::string_view bytes, std::string_view declared);

// What bytes look like by how they begin ("an ELF executable"); empty: like nothing that is known.
std::string_view binary_kind(std::string_view bytes);

}  // namespace muniment::retrieval
