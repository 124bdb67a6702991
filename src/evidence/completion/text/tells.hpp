// Finds signs of an attack (tells) in a text: markup, SQL, JNDI, traversal, shell, prompts, invisible and control
// characters. One pass searches for the first bytes of each sign; the text is never interpreted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::completion {

enum class Tell : std::uint8_t { markup, sql, lookup, traversal, shell, code, prompt, bidi, zero_width, nul, ansi };
inline constexpr std::size_t tells_count = 11;

struct FoundTell {
  Tell tell;
  std::size_t offset = 0;  // position of the first tell of its kind
  bool quoted = false;     // inside quotes, or on a line that quotes source code, such as a traceback
};

// The first unquoted tell of each kind; the first quoted one if all are quoted.
std::vector<FoundTell> tells_in(std::string_view text);

}  // namespace muniment::evidence::completion
