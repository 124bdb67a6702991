// The units between which text may be cut: code points, grapheme clusters and white space, in UTF-8 and in place.
// Grapheme clusters follow UAX 29 (extended) with ICU's properties. Every function reads only as far as necessary, so
// that a splitter that calls them once per piece is linear.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace muniment::retrieval {

// A span of a text, in bytes.
struct Span {
  std::size_t start = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - start; }
  bool empty() const { return start >= end; }
};

inline std::string_view piece_of(std::string_view text, Span span) { return text.substr(span.start, span.size()); }

// The code point at `at` of valid UTF-8, and the one before `at`.
CodePoint code_point_before(std::string_view text, std::size_t at);

bool is_white_space(char32_t c);  // also U+FEFF, which has no meaning inside a text
bool is_ascii_blank(char c);      // space, tab, carriage return, line feed, vertical tab, form feed
bool is_letter_or_digit(char32_t c);
bool is_ideographic(char32_t c);      // true for scripts without spaces: Han, kana, Thai, Lao, Khmer, Myanmar
bool continues_grapheme(char32_t c);  // begins a cluster only at the start of a line

// The end of the cluster that begins at `at`.
std::size_t next_grapheme(std::string_view text, std::size_t at);

// The last edge between clusters up to `at`. A cluster over one KiB, which no person writes, is cut between code
// points.
std::size_t grapheme_edge(std::string_view text, std::size_t at);

// The longest prefix of the text with whole clusters and at most `bytes_max` bytes.
std::string_view first_graphemes(std::string_view text, std::size_t bytes_max);

// Removes white space at both ends; never splits a cluster.
Span trimmed(std::string_view text, Span span);
std::string_view trimmed(std::string_view text);

// Returns the letter in lower case without accents, for comparing spellings. Empty for a mark.
std::string folded(char32_t c);

std::string lower_ascii(std::string_view text);

// Returns whether a name is in a list of names separated by spaces.
bool is_listed(std::string_view names, std::string_view name);

// Iterates over lines: `start` to `end` without the line feed.
class Lines {
 public:
  Lines(std::string_view text, Span span) : text_(text), at_(span.start), end_(span.end) {}
  std::optional<Span> next();
  std::size_t position() const { return at_; }  // start of the next line

 private:
  std::string_view text_;
  std::size_t at_;
  std::size_t end_;
};

}  // namespace muniment::retrieval
