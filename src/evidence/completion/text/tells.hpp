// Signs of an attack in a text: markup, SQL, JNDI, traversal, shell, prompts, invisible and control characters. One
// pass looks at the few bytes that each sign begins with; the text is read, never interpreted.
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
  std::size_t offset = 0;  // of the first one of its kind
  bool quoted = false;     // inside quotes or on a line that quotes source, as a traceback does
};

// The first unquoted one of each kind; where all are quoted, the first of those.
std::vector<FoundTell> tells_in(std::string_view text);

}  // namespace muniment::evidence::completion
