// Patterns over English sentences: case is ignored, and a pattern is a part of the program, so that it always compiles.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace muniment::evidence::run_judge {

// What a pattern found: the whole of it, and its first group where it has one.
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
  // The match that ends last.
  std::optional<Match> find_last(std::string_view text) const;

 private:
  re2::RE2* pattern_;  // owned; the header names no third-party type
};

}  // namespace muniment::evidence::run_judge
