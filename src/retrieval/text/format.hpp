// Detects a document's format: by its extension, then by the sender's mime type, then by its content.
#pragma once

#include <string_view>

#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {

// Detects a PDF by the mark at its beginning or, if its name or mime type says PDF, near it. Its bytes are not text in
// any encoding.
bool is_pdf(std::string_view bytes, std::string_view name, std::string_view mime_type);

// `text` is UTF-8. If the text does not satisfy a format, the next best one is used: broken JSON is text.
Format format_of(std::string_view text, std::string_view name, std::string_view mime_type);

// Returns "txt" for "notes/a.txt"; a name like Makefile is its own extension. Lower case; empty: none.
std::string extension_of(std::string_view name);

}  // namespace muniment::retrieval
