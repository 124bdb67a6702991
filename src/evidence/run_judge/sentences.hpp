// The sentences of a message that can hold a claim: Markdown's code blocks and quoted lines are left out, lines of a
// paragraph are joined.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::run_judge {

inline constexpr std::size_t sentence_bytes_max = 1'000;  // a longer one is cut into pieces
inline constexpr std::size_t sentences_max = 2'000;       // of a message

struct Sentence {
  std::string text;    // as it was written, on one line
  std::string masked;  // the same length: quotations and code are q, names of tests among them begin with test
  bool question = false;
};

std::vector<Sentence> sentences_of(std::string_view text);

}  // namespace muniment::evidence::run_judge
