// Extracts the visible text of a page. It has its own tokenizer, which reads the markup once and builds no tree: the
// tree of HTML5 can become quadratic by nesting and unclosed formatting, and deep enough to overflow a stack when it is
// freed. Only paragraphs, headings and hidden elements matter here.
#pragma once

#include <string>
#include <string_view>

#include "retrieval/text/blocks.hpp"

namespace muniment::retrieval {

struct ExtractedText {
  std::string text;  // UTF-8
  Blocks blocks;
};

// Drops scripts, styles, comments and hidden elements. `markup` is UTF-8.
ExtractedText extract_html(std::string_view markup);

// Resolves character references.
std::string unescape_html(std::string_view source);

// "eacute" → U+00E9; 0 if unknown. Knows HTML 4's names, and the quotes and signs that pages use beyond them.
char32_t named_character(std::string_view name);

}  // namespace muniment::retrieval
