// Computes the shape of a text: a hash of its words in order, without numbers, white space and punctuation.
#include <array>

#include "base/crypto/sha256.hpp"
#include "evidence/completion/completion.hpp"
#include "evidence/completion/text/summary.hpp"
#include "evidence/completion/text/words.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::evidence::completion {

std::string shape_of(std::string_view text) {
  std::string words;
  words.reserve(text.size());
  std::size_t count = 0;
  each_word(text, [&](std::string_view word) {
    words += word;
    words += ' ';
    ++count;
  });
  if (count < shape_words_min) return {};
  const Summary summary = summary_of(text);
  if (summary.test_lines > 0) return {};
  return to_hex(sha256(words));
}

}  // namespace muniment::evidence::completion
