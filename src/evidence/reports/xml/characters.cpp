// Converts encodings with iconv, and replaces the characters that XML does not allow.
#include "evidence/reports/xml/characters.hpp"

#include <iconv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>

#include "base/text.hpp"
#include "base/utf8.hpp"

namespace muniment::evidence::reports {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";
constexpr std::size_t encoding_name_bytes_max = 64;
constexpr std::size_t reference_bytes_max = 12;  // "&#x0010FFFF;"

// Converts the bytes to UTF-8; `unit` is the size of the encoding's smallest unit. nullopt: the encoding is unknown.
std::optional<std::string> converted(std::string_view bytes, const std::string& encoding, std::size_t unit) {
  const iconv_t converter = ::iconv_open("UTF-8", encoding.c_str());
  if (converter == reinterpret_cast<iconv_t>(-1)) return std::nullopt;
  std::string text;
  std::array<char, 16 * 1024> piece{};
  std::string input(bytes);
  char* in = input.data();
  std::size_t in_left = input.size();
  while (in_left > 0) {
    char* out = piece.data();
    std::size_t out_left = piece.size();
    const bool failed = ::iconv(converter, &in, &in_left, &out, &out_left) == static_cast<std::size_t>(-1);
    const int reason = errno;
    text.append(piece.data(), piece.size() - out_left);
    if (!failed || reason == E2BIG) continue;
    text += replacement;
    const std::size_t skipped = std::min(unit, in_left);
    in += skipped;
    in_left -= skipped;
  }
  ::iconv_close(converter);
  return text;
}

bool is_allowed(std::uint32_t value) {
  return value == '\t' || value == '\n' || value == '\r' || (value >= 0x20 && value < 0xd800) ||
         (value >= 0xe000 && value < 0xfffe) || (value >= 0x10000 && value <= 0x10ffff);
}

// Returns the size of a reference at the front of the text to a character that XML does not allow ("&#x1B;"); 0: none.
std::size_t size_of_bad_reference(std::string_view text) {
  if (!text.starts_with("&#")) return 0;
  const std::size_t end = text.substr(0, reference_bytes_max).find(';');
  if (end == std::string_view::npos) return 0;
  std::string_view digits = text.substr(2, end - 2);
  const bool hex = digits.starts_with('x');
  if (hex) digits.remove_prefix(1);
  std::uint32_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  const bool whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  return whole && !is_allowed(value) ? end + 1 : 0;
}

// Returns the encoding that the XML declaration names; empty if it names none.
std::string declared_encoding(std::string_view text) {
  if (!text.starts_with("<?xml")) return {};
  const std::string_view declaration = text.substr(0, text.find("?>"));
  const std::size_t name = declaration.find("encoding");
  if (name == std::string_view::npos) return {};
  const std::size_t open = declaration.find_first_of("\"'", name);
  if (open == std::string_view::npos) return {};
  return std::string(declaration.substr(open + 1, declaration.find(declaration[open], open + 1) - open - 1));
}

std::string lower_of(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

// Returns whether the encoding needs no conversion. The declaration was readable as single bytes, so that the text is
// not in the wide encoding that some tools declare.
bool is_utf8(std::string_view name) {
  const std::string lower = lower_of(name);
  return lower.empty() || lower == "utf-8" || lower == "utf8" || lower == "us-ascii" || lower == "ascii" ||
         lower.starts_with("utf-16") || lower.starts_with("utf-32") || lower.starts_with("iso-10646");
}

// The encodings that reports declare. Others are refused, because their converters in the C library are seldom used.
bool is_converted(std::string_view name) {
  constexpr std::array<std::string_view, 14> families{"iso-8859-", "iso8859-", "iso_8859-", "latin",  "windows-125",
                                                      "cp125",     "koi8-",    "shift_jis", "euc-jp", "euc-kr",
                                                      "gb2312",    "gbk",      "gb18030",   "big5"};
  const std::string lower = lower_of(name);
  const bool plain = std::ranges::all_of(
      lower, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '_'; });
  return plain && lower.size() <= encoding_name_bytes_max &&
         std::ranges::any_of(families, [&](std::string_view family) { return lower.starts_with(family); });
}

std::string only_allowed(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t reference = size_of_bad_reference(text.substr(at, reference_bytes_max)); reference > 0) {
      clean += replacement;
      at += reference;
      continue;
    }
    const CodePoint point = decode_utf8(text, at);
    const std::size_t size = std::max<std::size_t>(point.size, 1);
    clean += point.size > 0 && is_allowed(point.value) ? text.substr(at, size) : replacement;
    at += size;
  }
  return clean;
}

}  // namespace

std::string without_mark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) return std::string(text.substr(3));
  const std::string_view first = text.substr(0, 2);
  const bool little = first == "\xff\xfe" || first == std::string_view("<\0", 2) || first == std::string_view("{\0", 2);
  const bool big = first == "\xfe\xff" || first == std::string_view("\0<", 2) || first == std::string_view("\0{", 2);
  if (!little && !big) return {};
  const bool marked = first == "\xff\xfe" || first == "\xfe\xff";
  return converted(text.substr(marked ? 2 : 0), little ? "UTF-16LE" : "UTF-16BE", 2).value_or("");
}

Result<std::string> clean_xml(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const std::string encoding = declared_encoding(text);
  if (is_utf8(encoding)) return only_allowed(text);
  const auto decoded = is_converted(encoding) ? converted(text, encoding, 1) : std::nullopt;
  if (!decoded)
    return Error(Errc::invalid_argument, "the encoding \"" + preview(encoding, encoding_name_bytes_max) +
                                             "\" is not supported. Write the report in UTF-8");
  return only_allowed(*decoded);
}

}  // namespace muniment::evidence::reports
