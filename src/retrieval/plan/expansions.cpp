// Expands questions by rules.
#include "retrieval/plan/expansions.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "retrieval/query/function_words.hpp"

namespace muniment::retrieval {
namespace {

bool says_nothing(std::string_view word) {
  return is_function_word(word, "en") || is_function_word(word, "de") || is_function_word(word, "fr") ||
         is_function_word(word, "es");
}

}  // namespace

Expansions heuristic_expansions(std::string_view text) {
  text = text.substr(0, limits::query_text_bytes_max);
  std::string kept;
  bool dropped = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    std::string lower;
    for (const char c : word) {
      if (c != '?' && c != ',' && c != '.' && c != '!' && c != ';')
        lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    if (lower.empty() || says_nothing(lower)) {
      dropped = dropped || !lower.empty();
    } else {
      kept += (kept.empty() ? "" : " ") + std::string(word);
    }
    at = end;
  }
  Expansions expansions;
  if (dropped && !kept.empty()) {
    expansions.lexical.push_back(kept);
    expansions.vector.push_back(std::move(kept));
  }
  return expansions;
}

}  // namespace muniment::retrieval
