// Helpers of the scanners for signs of an attack, and the scanners that tells.cpp calls. Each scans from one position
// of a text, ignores case, and reads at most sign_bytes_max.
#pragma once

#include <algorithm>
#include <string_view>

#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {

inline constexpr std::size_t sign_bytes_max = 200;  // length of a scan, from the first byte of the sign

inline bool same(char a, char b) { return lower(a) == b; }

// Returns whether the text begins with `prefix`, which is in lower case.
inline bool begins(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char p, char t) { return same(t, p); });
}

inline bool is_word_byte(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

// Returns whether a text begins with one of `pairs`: pairs of lower-case letters, separated by spaces. Most words fail
// this quick test.
inline bool begins_as_any(std::string_view text, std::string_view pairs) {
  if (text.size() < 2) return false;
  const char first = lower(text[0]), second = lower(text[1]);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 3) {
    if (pairs[i] == first && pairs[i + 1] == second) return true;
  }
  return false;
}

inline std::string_view skip_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text[0])) text.remove_prefix(1);
  return text;
}

inline std::string_view word_at(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_word_byte(text[end])) ++end;
  return text.substr(0, end);
}

inline bool begins_word(std::string_view text, std::string_view word) {
  return begins(text, word) && (text.size() == word.size() || !is_word_byte(text[word.size()]));
}

inline bool contains(std::string_view text, std::string_view part) {
  for (std::size_t i = 0; i + part.size() <= text.size(); ++i) {
    if (begins(text.substr(i), part)) return true;
  }
  return false;
}

inline std::string_view line_from(std::string_view text) {
  return text.substr(0, std::min(text.find('\n'), text.size()));
}

// `at` begins at the first letter of a word; `before` is the text before it.
bool is_bare_sql(std::string_view at, std::string_view before);
// `at` begins at a quote: '; DROP TABLE x; --
bool is_broken_quote(std::string_view at);
bool overrides_instructions(std::string_view at);
bool orders_reader(std::string_view at, std::string_view before);
bool takes_role(std::string_view at, std::string_view before);
bool addresses_reader(std::string_view at);

}  // namespace muniment::evidence::completion
