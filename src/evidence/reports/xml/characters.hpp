// Converts the bytes of a report to UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment::evidence::reports {

// Returns the text as UTF-8 if it is UTF-16, with or without a byte order mark, or begins with the mark of UTF-8, which
// is removed. Otherwise returns an empty string: the text is read as it is.
std::string without_mark(std::string_view text);

// Returns XML as UTF-8 that a parser of XML 1.0 accepts: converted from the declared encoding, without white space
// before the declaration. U+FFFD replaces invalid bytes, control characters, and references to characters that XML does
// not allow. Errors: invalid_argument for an unknown encoding.
Result<std::string> clean_xml(std::string_view text);

}  // namespace muniment::evidence::reports
