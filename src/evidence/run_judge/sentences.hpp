// Extracts the sentences of a message that can contain a claim. Code blocks and quoted lines of Markdown are omitted;
// the lines of a paragraph are joined.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::run_judge {

inline constexpr std::size_t sentence_bytes_max = 1'000;  // a longer sentence is cut into pieces
inline constexpr std::size_t sentences_max = 2'000;       // sentences of a message

struct Sentence {
  std::string text;    // the original text, on one line
  std::string masked;  // text of the same length; quotations and code are replaced by q, or by test… for names of tests
  bool question = false;
};

std::vector<Sentence> sentences_of(std::string_view text);

}  // namespace muniment::evidence::run_judge
