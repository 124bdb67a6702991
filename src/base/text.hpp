// Formats text for terminals and messages: truncation at characters, escapes, numbers with units. It also holds two
// parsers that all line-based formats use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muniment {

// Returns at most `bytes_max` bytes of the text, ending in "…" if it was truncated; never splits a character.
std::string preview(std::string_view text, std::size_t bytes_max);

// Makes external text safe to print: control characters (except line feed and tab), the introducers of ANSI sequences,
// bidirectional controls and bytes that are not UTF-8 are shown as \x1b or \u{202e}.
std::string escape_for_terminal(std::string_view text);

// As above for JSON, which stays valid and equal: \u001b, \u202e.
std::string escape_json_for_terminal(std::string_view json);

// Removes the first line with its line feed and returns it; nullopt if there is no line feed.
std::optional<std::string_view> take_line(std::string_view& text);

// Parses a decimal number without leading zeros; nullopt for any other text, or beyond 2^63 - 1.
std::optional<std::int64_t> parse_decimal(std::string_view text);

// Joins the parts with `separator`. (With fmt::join, gcc 12 warns of an overflow that does not exist.)
template <typename Range>
std::string joined(const Range& parts, std::string_view separator) {
  std::string text;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) text += separator;
    first = false;
    text += part;
  }
  return text;
}

std::string grouped(std::uint64_t number);  // 61441 → "61,441"
// Returns "1 event" for (1, "event", "events").
std::string many(std::int64_t count, std::string_view one, std::string_view more);
std::string human_size(std::uint64_t bytes);      // 1536 → "1.5 KiB"
std::string human_duration(std::int64_t micros);  // 12400000 → "12.4 s"

// Quotes a word for a shell, only if necessary.
std::string shell_word(std::string_view word);

}  // namespace muniment
