// What a document is: by its extension, then by what the sender says, then by its content.
#pragma once

#include <string_view>

#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {

// By its mark at the very beginning, or, where it is called one, near it. Its bytes are no text in any encoding.
bool is_pdf(std::string_view bytes, std::string_view name, std::string_view mime_type);

// `text` is UTF-8. A format that the text does not fulfil is given up for the next best: broken JSON is text.
Format format_of(std::string_view text, std::string_view name, std::string_view mime_type);

// "txt" of "notes/a.txt"; a name like Makefile is its own extension. Lower case; empty: none.
std::string extension_of(std::string_view name);

}  // namespace muniment::retrieval
