// Decodes what texts hide in: escapes, look-alike characters, Base64 and hexadecimal digits.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::bridge {

// The replacement of the bytes at a place; an unchanged byte is its own.
struct Folded {
  std::array<char, 4> bytes{};
  std::size_t size = 0;
  std::size_t consumed = 1;
  bool changed = false;  // in a way that can reveal a secret; \n and \" do not count
  std::string_view text() const { return {bytes.data(), size}; }
};

Folded fold(std::string_view text, std::size_t at);

// Returns the first place from `at` on whose replacement differs; the size of the text if there is none.
std::size_t next_folded(std::string_view text, std::size_t at);

struct DecodedRun {
  std::size_t begin = 0;  // in the encoded text
  std::size_t end = 0;
  std::string text;
};

// Returns the readable texts in Base64 (also its URL form, also over several lines) and in hexadecimal digits (also
// with separators) of at least 12 and 8 bytes.
std::vector<DecodedRun> decoded_runs(std::string_view text);

}  // namespace muniment::bridge
