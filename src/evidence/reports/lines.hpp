// What the readers of console output share: plain text, lines, and numbers at the front of a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muniment::evidence::reports {

// A count above this is absurd: no report of report_bytes_max lists so many tests.
inline constexpr std::int64_t count_max = 1'000'000'000;

// The text holds terminal sequences or carriage returns, so that plain_text would change it.
bool needs_plain_text(std::string_view text);

// The text without terminal sequences (colours, titles). A carriage return ends a line, as a line feed does: what a
// progress line overwrites is a line of its own.
std::string plain_text(std::string_view text);

// The lines of a text, without their line feeds; the last one need not have any.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  std::optional<std::string_view> next();

 private:
  std::string_view rest_;
};

// Whether a line that is not empty matches.
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

std::string_view trimmed(std::string_view text);                     // without spaces and tabs at both ends
std::string_view first_word(std::string_view text);                  // up to a space or a tab
bool is_all_of(std::string_view text, std::string_view characters);  // and is not empty

// Removes the prefix; false, and the text unchanged, where it does not begin so.
bool take(std::string_view& text, std::string_view prefix);

// Removes a decimal number, with a minus sign in front for a count that a hostile report may state. A number beyond
// ±count_max is one beyond it: check_counts refuses both.
std::optional<std::int64_t> take_count(std::string_view& text);

// The whole text is such a number.
std::optional<std::int64_t> count_of(std::string_view text);

}  // namespace muniment::evidence::reports
