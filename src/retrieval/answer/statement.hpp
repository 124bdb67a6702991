// Compares short texts as statements, by their words: whether two say the same, and whether a newer one may replace an
// older one. A comparison of words, not of meaning: it is used to order and to mark, never to omit what differs.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

// Stems without function words; negations are kept.
struct Statement {
  std::string key;              // the stems in order: equal for texts that say the same in the same order
  std::set<std::string> words;  // the stems
  std::set<std::string> names;  // those of words that begin with a capital within a sentence
};

// `language`: ISO 639-1; "none" is read as English, since the language of a few words is often unknown.
Statement statement_of(std::string_view text, std::string_view language);

// A statement that was found for a question, in the order of the ranking.
struct DatedStatement {
  Statement statement;
  std::set<std::string> asked;  // words of the question, in the stems of its language
  std::string_view group;       // statements of other groups are not compared: its corpus
  std::string_view time;        // RFC 3339 in UTC; empty: it is not compared
  bool trusted = false;         // only a trusted statement may replace a trusted one
};

struct PlacedStatement {
  std::size_t index = 0;
  std::optional<std::size_t> newer{};  // index of a newer statement about the same, which precedes it
};

// Moves each statement before the older ones that it may replace: both have at least two words of the question (or its
// only one), the newer one lacks at most one of those that the older one has, and no name, and has half of the older
// one's words. `asked_names`: names in the question; those in the statements count too.
std::vector<PlacedStatement> newer_first(std::span<const DatedStatement> statements, std::set<std::string> asked_names);

}  // namespace muniment::retrieval
