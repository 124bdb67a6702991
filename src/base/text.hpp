// Text for people: cut at a character, safe on a terminal, numbers with units. And the two things that every format
// made of lines is read by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muniment {

// At most `bytes_max` bytes of the text, ending in "…" where it was cut; never half a character.
std::string preview(std::string_view text, std::size_t bytes_max);

// What came from outside, made safe to print: control characters (but line feed and tab), the
// introducers of ANSI sequences, bidirectional controls and bytes that are not UTF-8 are shown as
// \x1b or \u{202e}.
std::string escape_for_terminal(std::string_view text);

// The same for JSON, which stays JSON that says the same: \u001b, \u202e.
std::string escape_json_for_terminal(std::string_view json);

// The line up to the next line feed, which goes with it; nullopt where there is no line feed left.
std::optional<std::string_view> take_line(std::string_view& text);

// A number as it is written: digits, and no zero in front of others. nullopt for anything else, or over 2^63 - 1.
std::optional<std::int64_t> parse_decimal(std::string_view text);

// The parts with `separator` between them. (fmt::join does that too, and has gcc 12 warn of an
// overflow that is not there.)
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

std::string grouped(std::uint64_t number);        // 61441 → "61,441"
std::string human_size(std::uint64_t bytes);      // 1536 → "1.5 KiB"
std::string human_duration(std::int64_t micros);  // 12400000 → "12.4 s"

// A word as a shell takes it; quoted only where it must be.
std::string shell_word(std::string_view word);

}  // namespace muniment
