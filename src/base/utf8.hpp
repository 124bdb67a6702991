// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muniment {

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;  // bytes of its sequence; 0: what stands there is not UTF-8
};

// The code point that starts at `at`, which is inside the text.
CodePoint decode_utf8(std::string_view text, std::size_t at);

void append_utf8(std::string& out, char32_t code_point);

// The offset of the first byte that is not part of a sequence; npos when all of it is UTF-8.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace muniment
