#include "bridge/decode.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace muniment::bridge {
namespace {

constexpr std::size_t base64_digits_min = 16;
constexpr std::size_t base64_line_min = 16;  // a run this long may continue on the next line
constexpr std::size_t base64_starts_max = 12;
constexpr std::size_t readable_bytes_min = 12;
constexpr std::size_t hex_pairs_min = 8;
constexpr std::uint8_t no_digit = 0xff;

constexpr std::array<std::uint8_t, 256> make_base64_digits() {
  std::array<std::uint8_t, 256> values{};
  values.fill(no_digit);
  std::uint8_t value = 0;
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
    values[static_cast<unsigned char>(c)] = value++;
  values['-'] = 62;
  values['_'] = 63;
  return values;
}
constexpr std::array<std::uint8_t, 256> base64_digits = make_base64_digits();

bool is_digit64(char c) { return base64_digits[static_cast<unsigned char>(c)] != no_digit; }
bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Zero bytes are those of UTF-16.
bool is_readable(unsigned char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t' || c == '\r' || c == 0; }

int nibble(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

// Decodes until `bytes_max` or the second unreadable byte in a row, which ends the text.
std::string decode_base64(std::string_view digits, std::size_t bytes_max) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  int unreadable = 0;
  for (const char c : digits) {
    bits = bits << 6 | base64_digits[static_cast<unsigned char>(c)];
    count += 6;
    if (count < 8) continue;
    count -= 8;
    const auto byte = static_cast<unsigned char>(bits >> count & 0xff);
    unreadable = is_readable(byte) ? 0 : unreadable + 1;
    if (unreadable == 2 || out.size() == bytes_max) break;
    if (byte != 0) out += static_cast<char>(byte);
  }
  return out;
}

bool is_readable_text(std::string_view bytes, std::size_t least) {
  return bytes.size() >= least &&
         std::all_of(bytes.begin(), bytes.end(), [](char c) { return is_readable(static_cast<unsigned char>(c)); });
}

// The digits of a run without its line breaks, and the place of the run.
struct Digits {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string joined;  // empty: the run has one line
};

// A run may begin with the end of another word, such as a folder: tries each place at which the code may begin. Returns
// the place at which readable text begins; the size of the run if there is none.
std::size_t base64_begin(std::string_view digits) {
  std::size_t tried = 0;
  for (std::size_t from = 0; from + base64_digits_min <= digits.size() && tried < base64_starts_max; ++from) {
    const bool after_mark = from > 0 && std::isalnum(static_cast<unsigned char>(digits[from - 1])) == 0;
    if (from > 3 && !after_mark) continue;
    ++tried;
    // Nine of twelve bytes; in UTF-16 half of them are zero.
    const std::string head = decode_base64(digits.substr(from), readable_bytes_min);
    if (is_readable_text(head, 9)) return from;
    if (digits.size() > 2 * base64_digits_min && is_readable_text(head, 6)) return from;
  }
  return digits.size();
}

void add_hex(std::string_view digits, const Digits& place, std::vector<DecodedRun>& runs) {
  std::string text;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    const auto byte = static_cast<unsigned char>(nibble(digits[i]) << 4 | nibble(digits[i + 1]));
    if (!is_readable(byte)) return;
    if (byte != 0) text += static_cast<char>(byte);
  }
  if (text.size() >= hex_pairs_min) runs.push_back({place.begin, place.end, std::move(text)});
}

// Reads "67 68 70", "67:68:70" or "0x67, 0x68, 0x70" at `at`. Returns the place after it.
std::size_t add_hex_pairs(std::string_view text, std::size_t at, std::vector<DecodedRun>& runs) {
  constexpr std::string_view between = " ,:-\n\r\t";
  std::string digits;
  std::size_t end = at;
  for (std::size_t next = at; next + 1 < text.size();) {
    if (text.substr(next, 2) == "0x") next += 2;
    if (next + 1 >= text.size() || !is_hex(text[next]) || !is_hex(text[next + 1])) break;
    if (next + 2 < text.size() && std::isalnum(static_cast<unsigned char>(text[next + 2])) != 0) break;
    digits.append(text, next, 2);
    end = next += 2;
    for (int i = 0; i < 3 && next < text.size() && between.find(text[next]) != std::string_view::npos; ++i) ++next;
    if (next == end) break;
  }
  if (digits.size() >= 2 * hex_pairs_min) add_hex(digits, {at, end, {}}, runs);
  return end;
}

// Returns the end of the digits at `at`.
std::size_t end_of_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit64(text[at])) ++at;
  return at;
}

// Returns the place after a line break and an indentation, also one that is written as \n; 0 if there is none.
std::size_t after_break(std::string_view text, std::size_t at) {
  std::size_t next = at;
  for (const std::string_view line_break : {"\\r\\n", "\\n", "\r\n", "\n"}) {
    if (text.substr(next).starts_with(line_break)) {
      next += line_break.size();
      break;
    }
  }
  if (next == at) return 0;
  while (next < text.size() && (text[next] == ' ' || text[next] == '\t')) ++next;
  return next;
}

Digits read_digits(std::string_view text, std::size_t at) {
  Digits run{at, end_of_digits(text, at), {}};
  for (std::size_t line = at; run.end - line >= base64_line_min;) {
    const std::size_t next = after_break(text, run.end);
    const std::size_t end = next == 0 ? 0 : end_of_digits(text, next);
    if (next == 0 || end == next) break;
    if (run.joined.empty()) run.joined = text.substr(line, run.end - line);
    run.joined += text.substr(next, end - next);
    line = next;
    run.end = end;
  }
  return run;
}

// Adds the texts of the word of digits [begin, end). Returns the place after them.
std::size_t add_word(std::string_view text, std::size_t begin, std::size_t end, std::vector<DecodedRun>& runs) {
  const std::string_view word = text.substr(begin, end - begin);
  const std::size_t before = runs.size();
  if (word.size() % 2 == 0 && std::all_of(word.begin(), word.end(), is_hex)) add_hex(word, {begin, end, {}}, runs);
  if (word[2] == '-' && runs.size() == before) add_hex_pairs(text, begin, runs);
  if (runs.size() > before) return end;
  const std::size_t from = base64_begin(word);
  if (from == word.size()) return end;
  Digits run = read_digits(text, begin);
  const std::string_view digits = run.joined.empty() ? word : std::string_view(run.joined);
  std::string decoded = decode_base64(digits.substr(from), digits.size());
  if (decoded.size() >= 9) runs.push_back({run.begin, run.end, std::move(decoded)});
  return run.end;
}

// Adds the first pairs of hexadecimal digits that begin in [begin, last]. Returns the place after them; 0 if there are
// none.
std::size_t add_pairs_near(std::string_view text, std::size_t begin, std::size_t last, std::vector<DecodedRun>& runs) {
  for (std::size_t at = begin; at <= last; ++at) {
    if (!is_hex(text[at]) || (at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0)) continue;
    const std::size_t end = add_hex_pairs(text, at, runs);
    if (end - at >= 3 * hex_pairs_min - 1) return end;
  }
  return 0;
}

bool is_hex_or_mark(char c) { return is_hex(c) || c == ' ' || c == ',' || c == ':' || c == 'x'; }

}  // namespace

// A word of 16 digits contains a place that is a multiple of 16, so that most bytes need not be read; so do eight
// pairs.
std::vector<DecodedRun> decoded_runs(std::string_view text) {
  std::vector<DecodedRun> runs;
  std::size_t done = 0;
  for (std::size_t probe = base64_digits_min - 1; probe < text.size(); probe += base64_digits_min) {
    if (probe < done) continue;
    std::size_t begin = probe;
    if (is_digit64(text[probe])) {
      while (begin > done && is_digit64(text[begin - 1])) --begin;
      const std::size_t end = end_of_digits(text, probe);
      if (end - begin >= base64_digits_min) {
        done = add_word(text, begin, end, runs);
        continue;
      }
    }
    if (probe + 2 >= text.size() || !is_hex_or_mark(text[probe]) || !is_hex_or_mark(text[probe + 1]) ||
        !is_hex_or_mark(text[probe + 2]))
      continue;
    const std::size_t first = probe > 2 * base64_digits_min ? probe - 2 * base64_digits_min : 0;
    begin = probe;
    while (begin > std::max(done, first) && is_hex_or_mark(text[begin - 1])) --begin;
    done = std::max(done, add_pairs_near(text, begin, probe, runs));
  }
  return runs;
}

}  // namespace muniment::bridge
