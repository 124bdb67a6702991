#include "base/text.hpp"

#include <charconv>

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "base/utf8.hpp"

namespace muniment {
namespace {

constexpr std::string_view ellipsis = "…";

// Characters that reorder, hide or overlay their neighbours (Unicode UAX 9, and zero-width ones).
bool is_deceptive(char32_t c) {
  return c == 0x061C || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) ||
         c == 0xFEFF || (c >= 0xE0000 && c <= 0xE007F);
}

bool is_control(char32_t c) {
  if (c == '\n' || c == '\t') return false;
  return c < 0x20 || (c >= 0x7F && c <= 0x9F);  // C1 contains the one-byte CSI
}

// Copies the text character by character, except those for which `replace(safe, character, byte)` has written a
// substitute.
template <typename Replace>
std::string rewritten(std::string_view text, Replace replace) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint here = decode_utf8(text, at);
    const std::size_t size = here.size == 0 ? 1 : here.size;
    if (!replace(safe, here, static_cast<std::uint8_t>(text[at]))) safe += text.substr(at, size);
    at += size;
  }
  return safe;
}

}  // namespace

std::string preview(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  if (bytes_max < ellipsis.size()) return {};
  std::size_t end = bytes_max - ellipsis.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)).append(ellipsis);
}

std::string escape_for_terminal(std::string_view text) {
  return rewritten(text, [](std::string& safe, const CodePoint& here, std::uint8_t byte) {
    const bool control = here.size == 0 || is_control(here.value);
    if (!control && !is_deceptive(here.value)) return false;
    if (here.size == 0 || here.value < 0x80) {
      fmt::format_to(std::back_inserter(safe), "\\x{:02x}", byte);
    } else {
      fmt::format_to(std::back_inserter(safe), "\\u{{{:04x}}}", static_cast<std::uint32_t>(here.value));
    }
    return true;
  });
}

std::string escape_json_for_terminal(std::string_view json) {
  return rewritten(json, [](std::string& safe, const CodePoint& here, std::uint8_t) {
    if (here.size == 0) {
      safe += "\\ufffd";
    } else if (here.value == '\r') {
      safe += ' ';  // white space between tokens; white space in a string is escaped already
    } else if (here.value > 0xFFFF && is_deceptive(here.value)) {
      const std::uint32_t offset = static_cast<std::uint32_t>(here.value) - 0x10000;
      fmt::format_to(std::back_inserter(safe), "\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10),
                     0xDC00 + (offset & 0x3FF));
    } else if (is_control(here.value) || is_deceptive(here.value)) {
      fmt::format_to(std::back_inserter(safe), "\\u{:04x}", static_cast<std::uint32_t>(here.value));
    } else {
      return false;
    }
    return true;
  });
}

std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::optional<std::int64_t> parse_decimal(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number < 0 || std::to_string(number) != text)
    return std::nullopt;
  return number;
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::string many(std::int64_t count, std::string_view one, std::string_view more) {
  return grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0)))
      .append(" ")
      .append(count == 1 ? one : more);
}

std::string human_size(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 6> units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // A value that would print as 1024.0 uses the next unit.
  for (; value >= 1023.95 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string human_duration(std::int64_t micros) {
  if (micros < 0) return "-" + human_duration(-micros);
  if (micros < 1'000) return fmt::format("{} µs", micros);
  const double seconds = static_cast<double>(micros) / 1e6;
  if (seconds < 0.99995) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3'600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86'400) return fmt::format("{} h {} min", whole / 3'600, whole % 3'600 / 60);
  return fmt::format("{} d {} h", whole / 86'400, whole % 86'400 / 3'600);
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace muniment
