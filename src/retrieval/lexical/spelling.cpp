// Lists the words at one edit.
#include "retrieval/lexical/spelling.hpp"

#include <algorithm>
#include <utility>

#include "base/utf8.hpp"

namespace muniment::retrieval {
namespace {

std::u32string decoded(std::string_view word) {
  std::u32string out;
  for (std::size_t at = 0; at < word.size();) {
    const CodePoint c = decode_utf8(word, at);
    if (c.size == 0) return {};
    out += c.value;
    at += c.size;
  }
  return out;
}

std::string encoded(const std::u32string& word) {
  std::string out;
  for (const char32_t c : word) append_utf8(out, c);
  return out;
}

// First and last letter, without accents.
std::pair<char32_t, char32_t> alphabet_of(const std::u32string& word) {
  for (const std::pair<char32_t, char32_t>& letters :
       {std::pair(U'a', U'z'), std::pair(U'\u0430', U'\u044F'), std::pair(U'\u03B1', U'\u03C9')}) {
    if (std::ranges::all_of(word, [&](char32_t c) { return c >= letters.first && c <= letters.second; }))
      return letters;
  }
  return {1, 0};
}

}  // namespace

std::vector<std::string> words_at_one_edit(std::string_view word) {
  const std::u32string letters = decoded(word);
  const auto [first, last] = alphabet_of(letters);
  std::vector<std::string> out;
  for (std::size_t i = 0; i <= letters.size(); ++i) {
    const std::u32string before = letters.substr(0, i), after = letters.substr(i);
    if (!after.empty()) out.push_back(encoded(before + after.substr(1)));
    if (after.size() > 1) out.push_back(encoded(before + after[1] + after[0] + after.substr(2)));
    for (char32_t c = first; c <= last; ++c) {
      out.push_back(encoded(before + c + after));
      if (!after.empty()) out.push_back(encoded(before + c + after.substr(1)));
    }
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  std::erase(out, word);
  return out;
}

}  // namespace muniment::retrieval
