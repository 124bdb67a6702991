// Finds a pattern in a line with RE2, in time linear in the line for every pattern.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace re2 {
class RE2;
}

namespace muniment::cli {

inline constexpr std::size_t pattern_bytes_max = 4096;

class LineMatch {
 public:
  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  // Errors: invalid_argument, with the problem of the pattern.
  static Result<LineMatch> compile(std::string_view pattern, bool ignore_case, bool literal);
  LineMatch(LineMatch&&) noexcept;
  ~LineMatch();

  std::optional<Span> find(std::string_view line) const;

 private:
  explicit LineMatch(std::unique_ptr<re2::RE2> pattern);
  std::unique_ptr<re2::RE2> pattern_;
};

}  // namespace muniment::cli
