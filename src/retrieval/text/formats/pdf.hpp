// The text of a PDF, in reading order, a page after the other.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "retrieval/text/formats/html.hpp"

namespace muniment::retrieval {

// Errors: corrupt where poppler cannot read it; invalid_argument for one that wants a password or holds no text (a
// scan); too_large.
Result<ExtractedText> extract_pdf(std::string_view bytes);

}  // namespace muniment::retrieval
