// Helpers for the readers of console output: plain text, lines, and numbers at the front of a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muniment::evidence::reports {

// A larger count is invalid: no report of report_bytes_max lists so many tests.
inline constexpr std::int64_t count_max = 1'000'000'000;

// Returns whether the text contains terminal sequences or carriage returns, which plain_text removes.
bool needs_plain_text(std::string_view text);

// Returns the text without terminal sequences (colours, titles). A carriage return ends a line, like a line feed, so
// each state of a progress line becomes a separate line.
std::string plain_text(std::string_view text);

// The lines of a text, without their line feeds; the last line may lack one.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  std::optional<std::string_view> next();

 private:
  std::string_view rest_;
};

// Returns whether a non-empty line matches.
template <typename Predicate>
bool any_line(std::string_view text, Predicate matches) {
  for (;;) {
    const std::size_t begin = text.find_first_not_of('\n');
    if (begin == std::string_view::npos) return false;
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (matches(text.substr(begin, end - begin))) return true;
    text.remove_prefix(end);
  }
}

std::string_view trimmed(std::string_view text);                     // removes spaces and tabs at both ends
std::string_view first_word(std::string_view text);                  // returns the text up to the first space or tab
bool is_all_of(std::string_view text, std::string_view characters);  // false if empty

// Removes the prefix; returns false and leaves the text unchanged if it does not begin with the prefix.
bool take(std::string_view& text, std::string_view prefix);

// Removes a decimal number. A hostile report may state a negative count, so that a minus sign is accepted. The result
// saturates one beyond ±count_max, which check_counts rejects.
std::optional<std::int64_t> take_count(std::string_view& text);

// Parses a text that consists of a number, like take_count.
std::optional<std::int64_t> count_of(std::string_view text);

}  // namespace muniment::evidence::reports
