// Converts JSON to the names and values for an index. Spans may begin and end within a value, so quotes are not paired:
// a whole value is parsed, while a part of one has its escapes resolved and its quotes removed.
#include <utility>

#include "base/json/json.hpp"
#include "retrieval/text/document_text.hpp"
#include "retrieval/text/unicode.hpp"

namespace muniment::retrieval {
namespace {

void append_value(std::string& out, const json::Value& value, std::string_view key) {
  if (value.is(json::Kind::object) || value.is(json::Kind::array)) {
    for (const json::Value part : value)
      append_value(out, part, value.is(json::Kind::object) ? part.key() : std::string(key));
    return;
  }
  if (!out.empty()) out += '\n';
  if (!key.empty()) out.append(key).append(": ");
  out += value.is(json::Kind::string) ? value.string_or("") : std::string(value.source());
}

// The value of the hexadecimal digits at `at`, at most four, and their number.
std::pair<char32_t, std::size_t> hexadecimal(std::string_view text, std::size_t at) {
  char32_t value = 0;
  std::size_t digits = 0;
  for (; digits < 4 && at + digits < text.size(); ++digits) {
    const char c = text[at + digits], lower = static_cast<char>(c | 0x20);
    if (!(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'f')) break;
    value = value * 16 + static_cast<char32_t>(c <= '9' ? c - '0' : lower - 'a' + 10);
  }
  return {value, digits};
}

// Reads the four digits of \u, and a surrogate's other half. Drops only an invalid escape: a chunk may begin anywhere
// or be damaged, and the byte after the last digit may begin a character.
char32_t take_escaped(std::string_view text, std::size_t& at) {
  const auto [value, digits] = hexadecimal(text, at);
  at += digits;
  if (digits < 4) return 0;
  if (value >= 0xD800 && value < 0xDC00 && text.substr(at).starts_with("\\u")) {
    const auto [low, low_digits] = hexadecimal(text, at + 2);
    if (low_digits == 4 && low >= 0xDC00 && low < 0xE000) {
      at += 6;
      return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    }
  }
  return value >= 0xD800 && value < 0xE000 ? char32_t{0} : value;
}

std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c == '"') continue;
    if (c != '\\' || at == text.size()) {
      out += c;
      continue;
    }
    const char escaped = text[at++];
    if (escaped == 'u') {
      if (const char32_t value = take_escaped(text, at)) append_utf8(out, value);
    } else if (escaped == 'n' || escaped == 'r' || escaped == 't' || escaped == 'b' || escaped == 'f') {
      out += escaped == 'n' ? '\n' : ' ';
    } else {
      out += escaped;
    }
  }
  return out;
}

}  // namespace

std::string index_text_of(Format format, std::string_view chunk) {
  if (format != Format::json && format != Format::jsonl) return std::string(chunk);
  if (const auto document = json::parse(chunk)) {
    std::string out;
    append_value(out, document->root(), "");
    return out;
  }
  return without_escapes(chunk);
}

}  // namespace muniment::retrieval
