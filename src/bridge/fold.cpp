#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>

#include "base/utf8.hpp"
#include "bridge/decode.hpp"

namespace muniment::bridge {
namespace {

constexpr char32_t removed = 0;

// Characters that look like those of ASCII (Unicode Technical Standard 39), in two strings of equal length.
constexpr std::u32string_view alike_characters =
    U"аеорсхуіјѕһԁԛԝкАВЕКМНОРСТХУІЈЅԌԚԜαονρυικΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɡℓſ․。｡⁄∕‐‑‒–—−‘’“”＇﹫﹒｜єгпӏтмвнѵӀօոսհցᴀʙᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢετσβγ";
constexpr std::string_view alike_letters =
    "aeopcxyijshdqwkABEKMHOPCTXYIJSGQWaovpuikABEZHIKMNOPTYXigls...//------''\"\"'@.|ernltmbhvlonuhgabcdejkmoptuvwzetoby";

static_assert(alike_characters.size() == alike_letters.size());

bool is_invisible(char32_t c) {
  return c == 0xAD || c == 0x34F || c == 0x61C || c == 0x115F || c == 0x1160 || c == 0x17B4 || c == 0x17B5 ||
         (c >= 0x180B && c <= 0x180F) || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0x3164 || (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF || c == 0xFFA0 ||
         (c >= 0x300 && c <= 0x36F) || (c >= 0x1D173 && c <= 0x1D17A) || (c >= 0xE0000 && c <= 0xE0FFF);
}

bool is_space(char32_t c) {
  return c == 0xA0 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Blocks in which the letters or digits follow each other: first, last, first character of ASCII.
struct Block {
  char32_t first, last, ascii;
};
constexpr Block blocks[] = {
    {0xFF01, 0xFF5E, '!'},   {0x24B6, 0x24CF, 'A'},   {0x24D0, 0x24E9, 'a'},   {0x249C, 0x24B5, 'a'},
    {0x2460, 0x2468, '1'},   {0x2070, 0x2070, '0'},   {0x2074, 0x2079, '4'},   {0x2080, 0x2089, '0'},
    {0x660, 0x669, '0'},     {0x6F0, 0x6F9, '0'},     {0x966, 0x96F, '0'},     {0x9E6, 0x9EF, '0'},
    {0xE50, 0xE59, '0'},     {0x1F130, 0x1F149, 'A'}, {0x1F150, 0x1F169, 'A'}, {0x1F170, 0x1F189, 'A'},
    {0x1F1E6, 0x1F1FF, 'A'},
};

// Returns the character of ASCII, `removed`, or nullopt for any other character.
std::optional<char32_t> ascii_of(char32_t c) {
  if (is_invisible(c)) return removed;
  if (is_space(c)) return U' ';
  if (c == 0xB2 || c == 0xB3) return c - 0xB0 + '0';
  if (c == 0xB9) return U'1';
  if (c >= 0x1D400 && c <= 0x1D6A3)
    return (c - 0x1D400) % 52 < 26 ? 'A' + (c - 0x1D400) % 52 : 'a' + (c - 0x1D400) % 52 - 26;
  if (c >= 0x1D7CE && c <= 0x1D7FF) return '0' + (c - 0x1D7CE) % 10;
  for (const Block& block : blocks) {
    if (c >= block.first && c <= block.last) return block.ascii + (c - block.first);
  }
  const std::size_t at = alike_characters.find(c);
  if (at == std::u32string_view::npos) return std::nullopt;
  return static_cast<char32_t>(alike_letters[at]);
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Reads between `least` and `most` hexadecimal digits at `at`, which it advances.
std::optional<char32_t> read_hex(std::string_view text, std::size_t& at, std::size_t least, std::size_t most) {
  char32_t value = 0;
  std::size_t count = 0;
  for (; count < most && at < text.size() && hex_value(text[at]) >= 0; ++count, ++at)
    value = value << 4 | static_cast<char32_t>(hex_value(text[at]));
  if (count < least) return std::nullopt;
  return value;
}

Folded folded_to(char32_t c, std::size_t consumed) {
  Folded folded;
  folded.consumed = consumed;
  folded.changed = true;
  if (const auto ascii = c < 0x80 ? std::optional<char32_t>(c) : ascii_of(c); ascii) {
    if (*ascii == removed) return folded;
    folded.bytes[0] = static_cast<char>(*ascii);
    folded.size = 1;
    return folded;
  }
  std::string bytes;
  append_utf8(bytes, c);
  std::copy(bytes.begin(), bytes.end(), folded.bytes.begin());
  folded.size = bytes.size();
  return folded;
}

Folded unchanged(char c, std::size_t consumed = 1) {
  Folded folded;
  folded.bytes[0] = c;
  folded.size = 1;
  folded.consumed = consumed;
  return folded;
}

bool is_character(char32_t c) { return c >= 0x20 && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF); }

// \u0041 \u{41} \U00000041 \x41 \/ \n \" \\u0041
Folded fold_backslash(std::string_view text, std::size_t at) {
  std::size_t next = at + 1;
  while (next < text.size() && text[next] == '\\') ++next;
  if (next >= text.size()) return unchanged('\\');
  const char kind = text[next++];
  std::optional<char32_t> value;
  if (kind == 'u' && next < text.size() && text[next] == '{') {
    value = read_hex(text, ++next, 1, 6);
    if (next >= text.size() || text[next++] != '}') value.reset();
  } else if (kind == 'u') {
    value = read_hex(text, next, 4, 4);
  } else if (kind == 'U') {
    value = read_hex(text, next, 8, 8);
  } else if (kind == 'x') {
    value = read_hex(text, next, 2, 2);
  }
  if (value && is_character(*value)) return folded_to(*value, next - at);
  if (next - at != 2) return unchanged('\\');
  if (kind == 'n' || kind == 'r') return unchanged('\n', 2);
  if (kind == 't') return unchanged('\t', 2);
  if (kind == '"' || kind == '\'' || kind == '/') return unchanged(kind, 2);
  return unchanged('\\');
}

// &#65; &#x41; &commat; &period;
Folded fold_reference(std::string_view text, std::size_t at) {
  struct Name {
    std::string_view text;
    char32_t value;
  };
  constexpr Name names[] = {{"&commat;", '@'}, {"&period;", '.'}, {"&sol;", '/'},
                            {"&lowbar;", '_'}, {"&colon;", ':'},  {"&hyphen;", '-'}};
  const std::string_view rest = text.substr(at);
  for (const Name& name : names) {
    if (rest.starts_with(name.text)) return folded_to(name.value, name.text.size());
  }
  if (!rest.starts_with("&#") || rest.size() < 4) return unchanged('&');
  std::size_t next = at + 2;
  std::optional<char32_t> value;
  if (text[next] == 'x' || text[next] == 'X') {
    value = read_hex(text, ++next, 1, 6);
  } else {
    char32_t number = 0;
    const std::size_t first = next;
    for (; next < text.size() && next < first + 7 && std::isdigit(static_cast<unsigned char>(text[next])) != 0; ++next)
      number = number * 10 + static_cast<char32_t>(text[next] - '0');
    if (next > first) value = number;
  }
  if (!value || !is_character(*value) || next >= text.size() || text[next] != ';') return unchanged('&');
  return folded_to(*value, next + 1 - at);
}

// Returns whether none of eight bytes may be folded (the test for a zero byte of H. S. Warren, Hacker's Delight, 6-1).
bool none_may_fold(const char* bytes) {
  constexpr std::uint64_t each = 0x0101010101010101;
  constexpr std::uint64_t highest = 0x80 * each;
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  std::uint64_t found = word;
  for (const char c : {'%', '\\', '&'}) {
    const std::uint64_t zero = word ^ (static_cast<unsigned char>(c) * each);
    found |= (zero - each) & ~zero;
  }
  return (found & highest) == 0;
}

bool may_fold(char c) { return static_cast<signed char>(c) < 0 || c == '%' || c == '\\' || c == '&'; }

}  // namespace

Folded fold(std::string_view text, std::size_t at) {
  const char c = text[at];
  if (!may_fold(c)) return unchanged(c);
  if (c == '\\') return fold_backslash(text, at);
  if (c == '&') return fold_reference(text, at);
  if (c == '%') {
    std::size_t next = at + 1;
    // %2541 is an escape of %41.
    while (text.substr(next, 2) == "25") next += 2;
    const auto value = read_hex(text, next, 2, 2);
    return value && *value >= 0x20 && *value < 0x7f ? folded_to(*value, next - at) : unchanged('%');
  }
  const CodePoint point = decode_utf8(text, at);
  if (point.size == 0) return unchanged(c);
  if (ascii_of(point.value)) return folded_to(point.value, point.size);
  Folded same = folded_to(point.value, point.size);
  same.changed = false;
  return same;
}

std::size_t next_folded(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (at + 8 <= text.size() && none_may_fold(text.data() + at)) {
      at += 8;
      continue;
    }
    if (!may_fold(text[at])) {
      ++at;
      continue;
    }
    const Folded folded = fold(text, at);
    if (folded.changed) return at;
    at += folded.consumed;
  }
  return text.size();
}

}  // namespace muniment::bridge
