// Case-insensitive patterns over English sentences. Patterns are constants of the program, so they always compile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace muniment::evidence::run_judge {

// A match: its whole text, and the first group if the pattern has one.
struct Match {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view group;
};

class Pattern {
 public:
  explicit Pattern(const std::string& text, bool ignore_case = true);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  std::optional<Match> find(std::string_view text, std::size_t from = 0) const;
  bool in(std::string_view text) const { return find(text).has_value(); }
  // Returns the match that ends last.
  std::optional<Match> find_last(std::string_view text) const;

 private:
  re2::RE2* pattern_;  // owned; the header names no third-party type
};

// Returns the text with its ASCII letters in lower case.
std::string lowered(std::string_view text);

template <std::size_t size>
bool is_word_of(std::string_view word, const std::string_view (&words)[size]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

}  // namespace muniment::evidence::run_judge
