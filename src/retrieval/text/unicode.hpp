// Where text may be cut: code points, grapheme clusters and white space, in UTF-8 and in place.
// Grapheme clusters follow UAX 29 (extended) with ICU's properties. No function here looks further
// than it has to, so that a splitter that calls them once a piece stays linear.
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

// The code point at `at` of valid UTF-8; the one before `at`.
CodePoint code_point_before(std::string_view text, std::size_t at);

bool is_white_space(char32_t c);  // also U+FEFF, which says nothing inside a text
bool is_ascii_blank(char c);      // space, tab, carriage return, line feed, vertical tab, form feed
bool is_letter_or_digit(char32_t c);
bool is_ideographic(char32_t c);      // of a script that writes no spaces: Han, kana, Thai, Lao, Khmer, Myanmar
bool continues_grapheme(char32_t c);  // never begins a cluster, whatever stands before it but a line's end

// The end of the cluster that begins at `at`.
std::size_t next_grapheme(std::string_view text, std::size_t at);

// The last edge between clusters that is not beyond `at`. What is no cluster that a person writes
// (one over a KiB) is cut between code points.
std::size_t grapheme_edge(std::string_view text, std::size_t at);

// The longest beginning of the text that is whole clusters and at most `bytes_max` bytes.
std::string_view first_graphemes(std::string_view text, std::size_t bytes_max);

// Without white space at both ends; never parts a cluster.
Span trimmed(std::string_view text, Span span);
std::string_view trimmed(std::string_view text);

// Lower case without accents, letter by letter: what two spellings of a word have in common. Empty for a mark.
std::string folded(char32_t c);

std::string lower_ascii(std::string_view text);

// Whether a name is in a list of names with a space between them.
bool is_listed(std::string_view names, std::string_view name);

// One line after the other: `start` to `end` without its line feed.
class Lines {
 public:
  Lines(std::string_view text, Span span) : text_(text), at_(span.start), end_(span.end) {}
  std::optional<Span> next();
  std::size_t position() const { return at_; }  // where the next line begins

 private:
  std::string_view text_;
  std::size_t at_;
  std::size_t end_;
};

}  // namespace muniment::retrieval
