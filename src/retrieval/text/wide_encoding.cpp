// Recognizes UTF-16 and UTF-32 by a byte order mark, or by units that are all characters of text.
#include <algorithm>
#include <optional>

#include "base/limits.hpp"
#include "retrieval/text/encoding.hpp"

namespace muniment::retrieval {
namespace {

struct Wide {
  std::string_view name;
  std::size_t unit;  // bytes
  bool big;
};

constexpr Wide wides[] = {{"UTF-32LE", 4, false}, {"UTF-32BE", 4, true}, {"UTF-16LE", 2, false}, {"UTF-16BE", 2, true}};

char32_t unit_at(std::string_view bytes, std::size_t at, const Wide& wide) {
  char32_t value = 0;
  for (std::size_t i = 0; i < wide.unit; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[at + (wide.big ? i : wide.unit - 1 - i)]);
    value = value << 8 | byte;
  }
  return value;
}

bool is_high(char32_t c) { return c >= 0xD800 && c < 0xDC00; }
bool is_low(char32_t c) { return c >= 0xDC00 && c < 0xE000; }

// No control character but white space, no private or unassigned character, no surrogate.
bool occurs_in_text(char32_t c) {
  if (c < 0x20) return c == '\t' || c == '\n' || c == '\r' || c == '\f';
  const bool control = c >= 0x7F && c < 0xA0 && c != 0x85;
  const bool no_character = (c >= 0xD800 && c < 0xF900) || (c >= 0xFDD0 && c < 0xFDF0) || (c & 0xFFFE) == 0xFFFE;
  return !control && !no_character && c <= 0xE01EF;
}

// The number of ASCII characters; none if a unit cannot be text. In the wrong byte order, a text has hardly any.
std::optional<std::size_t> ascii_count(std::string_view sample, const Wide& wide, bool cut) {
  std::size_t ascii = 0;
  for (std::size_t at = 0; at < sample.size(); at += wide.unit) {
    char32_t c = unit_at(sample, at, wide);
    if (wide.unit == 2 && is_high(c)) {
      const bool last = at + 2 >= sample.size();
      if (last && cut) break;
      const char32_t low = last ? 0 : unit_at(sample, at + 2, wide);
      if (!is_low(low)) return std::nullopt;
      c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
      at += 2;
    }
    if (!occurs_in_text(c)) return std::nullopt;
    ascii += c < 0x80;
  }
  return ascii;
}

}  // namespace

std::string_view marked_encoding(std::string_view bytes) {
  if (bytes.starts_with(std::string_view("\xFF\xFE\0\0", 4))) return "UTF-32LE";
  if (bytes.starts_with(std::string_view("\0\0\xFE\xFF", 4))) return "UTF-32BE";
  if (bytes.starts_with("\xFF\xFE")) return "UTF-16LE";
  if (bytes.starts_with("\xFE\xFF")) return "UTF-16BE";
  return {};
}

std::string_view wide_encoding(std::string_view bytes) {
  const std::string_view sample = bytes.substr(0, limits::encoding_sample_bytes_max);
  if (sample.find('\0') == std::string_view::npos) return {};
  std::string_view best;
  std::size_t most = 0;
  for (const Wide& wide : wides) {
    if (sample.size() % wide.unit != 0) continue;
    const auto ascii = ascii_count(sample, wide, sample.size() < bytes.size());
    if (!ascii || *ascii <= most) continue;
    best = wide.name;
    most = *ascii;
    if (wide.unit == 4) break;  // as UTF-16 it would have NULs
  }
  return best;
}

}  // namespace muniment::retrieval
