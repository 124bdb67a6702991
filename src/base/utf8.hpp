// Validates and decodes UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muniment {

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;  // bytes of its sequence; 0: not valid UTF-8
};

// Decodes the code point at `at`, which must be inside the text.
CodePoint decode_utf8(std::string_view text, std::size_t at);

void append_utf8(std::string& out, char32_t code_point);

// Returns the offset of the first byte that is not part of a valid sequence; npos if there is none.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace muniment
