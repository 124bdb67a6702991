#include "retrieval/plan/expansions.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/limits.hpp"

namespace muniment::retrieval {
namespace {

// Sorted. Words that one of the languages uses for something else (will, may, like, die) are left out.
constexpr auto function_words = std::to_array<std::string_view>({
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "au", "aux", "avec", "be", "because",
    "been", "before", "being", "between", "both", "but", "by", "ce", "ces", "cette", "con", "could", "da", "dans", "das", "de",
    "dem", "den", "der", "des", "did", "do", "does", "doing", "don't", "du", "durch", "each", "ein", "eine", "einem", "einen",
    "einer", "el", "elle", "en", "er", "es", "est", "et", "for", "from", "für", "had", "has", "have", "having", "he", "her",
    "him", "his", "how", "i", "if", "il", "ils", "im", "in", "into", "is", "ist", "it", "its", "la", "las", "le", "les", "los",
    "me", "mit", "my", "not", "o", "of", "on", "or", "other", "our", "par", "para", "pour", "por", "que", "qui", "se",
    "she", "should", "sind", "so", "some", "such", "sur", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "un", "und", "une", "us", "von", "war", "was", "we", "were", "what", "when", "where",
    "which", "while", "who", "whom", "whose", "why", "wie", "with", "would", "y", "you", "your", "zu", "zum", "zur",
});

}  // namespace

bool is_function_word(std::string_view word) {
  return std::binary_search(function_words.begin(), function_words.end(), word);
}

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
      if (c != '?' && c != ',' && c != '.' && c != '!' && c != ';') lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    if (lower.empty() || is_function_word(lower)) {
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
