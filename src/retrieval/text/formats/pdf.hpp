// Extracts the text of a PDF in reading order, page by page.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "retrieval/text/formats/html.hpp"

namespace muniment::retrieval {

// Errors: corrupt if poppler cannot read it; invalid_argument if it needs a password or has no text (a scan);
// too_large.
Result<ExtractedText> extract_pdf(std::string_view bytes);

}  // namespace muniment::retrieval
