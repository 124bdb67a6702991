// Splits console output into plain lines, and parses numbers in them.
#include "evidence/reports/lines.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muniment::evidence::reports {
namespace {

constexpr char escape = '\x1b';

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns the position after the terminal sequence that begins at `at` with ESC.
std::size_t end_of_sequence(std::string_view text, std::size_t at) {
  std::size_t i = at + 1;
  if (i >= text.size()) return i;
  if (text[i] == '[') {  // CSI: parameters, then one final byte
    for (++i; i < text.size() && text[i] >= 0x20 && text[i] <= 0x3f;) ++i;
    return i < text.size() && text[i] >= 0x40 ? i + 1 : i;
  }
  if (text[i] == ']') {  // OSC: to BEL or ESC \ on the same line
    for (++i; i < text.size() && text[i] != '\n'; ++i) {
      if (text[i] == '\a') return i + 1;
      if (text[i] == escape) return i + 1 < text.size() && text[i + 1] == '\\' ? i + 2 : i;
    }
    return i;
  }
  if (text[i] == '(' || text[i] == ')') return std::min(i + 2, text.size());  // selects a character set
  return text[i] == '\n' ? i : i + 1;
}

}  // namespace

// Two searches for single bytes are faster than find_first_of, which looks up each byte of the text.
bool needs_plain_text(std::string_view text) {
  return text.find(escape) != std::string_view::npos || text.find('\r') != std::string_view::npos;
}

std::string plain_text(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == escape) {
      i = end_of_sequence(text, i);
    } else if (text[i] == '\r') {
      ++i;
      if (i >= text.size() || text[i] != '\n') plain += '\n';
    } else {
      plain += text[i++];
    }
  }
  return plain;
}

std::optional<std::string_view> Lines::next() {
  if (rest_.empty()) return std::nullopt;
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  const std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  return line;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string_view first_word(std::string_view text) { return text.substr(0, text.find_first_of(" \t")); }

bool is_all_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<std::int64_t> take_count(std::string_view& text) {
  std::string_view rest = text;
  const bool negative = take(rest, "-");
  if (rest.empty() || !is_digit(rest.front())) return std::nullopt;
  std::int64_t value = 0;
  while (!rest.empty() && is_digit(rest.front())) {
    value = std::min(value * 10 + (rest.front() - '0'), count_max + 1);
    rest.remove_prefix(1);
  }
  text = rest;
  return negative ? -value : value;
}

std::optional<std::int64_t> count_of(std::string_view text) {
  const auto value = take_count(text);
  return text.empty() ? value : std::nullopt;
}

}  // namespace muniment::evidence::reports
