// The text of a page as a reader would see it. A tokenizer of our own, which reads the markup once and builds no tree:
// the tree that HTML5 asks for can be made quadratic by nesting and by formatting that is never closed, and deep
// enough to overflow a stack when it is freed; of all of it only paragraphs, headings and what is hidden matter here.
#pragma once

#include <string>
#include <string_view>

#include "retrieval/text/blocks.hpp"

namespace muniment::retrieval {

struct ExtractedText {
  std::string text;  // UTF-8
  Blocks blocks;
};

// Scripts, styles, comments and hidden elements are dropped. `markup` is UTF-8.
ExtractedText extract_html(std::string_view markup);

// Character references resolved.
std::string unescape_html(std::string_view source);

// "eacute" → U+00E9; 0: not known. HTML 4's names, and quotes and signs that pages use beyond them.
char32_t named_character(std::string_view name);

}  // namespace muniment::retrieval
