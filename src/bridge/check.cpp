#include "bridge/check.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>
#include <string>

#include "base/crypto/sha256.hpp"

namespace muniment::bridge {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

char before(std::string_view text, std::size_t at) { return at == 0 ? ' ' : text[at - 1]; }
char after(std::string_view text, std::size_t at) { return at >= text.size() ? ' ' : text[at]; }

std::string digits_of(std::string_view text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), is_digit);
  return digits;
}

bool all_equal(std::string_view text) { return text.find_first_not_of(text[0]) == std::string_view::npos; }

// ISO/IEC 7812-1, annex B.
bool passes_luhn(std::string_view digits) {
  int sum = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    int value = digits[digits.size() - 1 - i] - '0';
    if (i % 2 == 1) value = value > 4 ? 2 * value - 9 : 2 * value;
    sum += value;
  }
  return sum % 10 == 0;
}

// Returns whether an issuer uses numbers of this length with this beginning.
bool is_card(std::string_view digits) {
  const int two = (digits[0] - '0') * 10 + digits[1] - '0';
  const int four = two * 100 + (digits[2] - '0') * 10 + digits[3] - '0';
  const std::size_t size = digits.size();
  if (digits[0] == '4') return size == 16 || size == 13 || size == 19;
  if ((two >= 51 && two <= 55) || (four >= 2221 && four <= 2720)) return size == 16;
  if (two == 34 || two == 37) return size == 15;
  if (two == 36 || two == 38 || (four >= 3000 && four <= 3059) || two == 39) return size == 14 || size == 16;
  if (four == 6011 || two == 65 || (four >= 6440 && four <= 6499)) return size == 16 || size == 19;
  if (four >= 3528 && four <= 3589) return size == 16;
  if (two == 62 || two == 60 || two == 81) return size >= 16;
  return (two == 50 || (two >= 56 && two <= 69)) && size >= 12;  // Maestro
}

bool is_card_number(const std::string& digits) { return is_card(digits) && passes_luhn(digits) && !all_equal(digits); }

// Also finds a number that is written backwards.
bool check_card(std::string_view text, Span& match) {
  if (is_digit(before(text, match.begin)) || before(text, match.begin) == '.') return false;
  std::string digits;
  for (std::size_t at = match.begin; at < text.size() && digits.size() < 19; ++at) {
    if (!is_digit(text[at])) {
      if (at >= match.end) break;
      continue;
    }
    digits += text[at];
    if (digits.size() < 13 || is_digit(after(text, at + 1))) continue;
    if (!is_card_number(digits) && !is_card_number({digits.rbegin(), digits.rend()})) continue;
    match.end = at + 1;
    return true;
  }
  return false;
}

struct Country {
  std::string_view code;
  std::size_t size;
};
// Lengths of the IBAN registry (SWIFT).
constexpr Country iban_sizes[] = {
    {"AD", 24}, {"AE", 23}, {"AL", 28}, {"AT", 20}, {"AZ", 28}, {"BA", 20}, {"BE", 16}, {"BG", 22}, {"BH", 22},
    {"BR", 29}, {"BY", 28}, {"CH", 21}, {"CR", 22}, {"CY", 28}, {"CZ", 24}, {"DE", 22}, {"DK", 18}, {"DO", 28},
    {"EE", 20}, {"EG", 29}, {"ES", 24}, {"FI", 18}, {"FO", 18}, {"FR", 27}, {"GB", 22}, {"GE", 22}, {"GI", 23},
    {"GL", 18}, {"GR", 27}, {"GT", 28}, {"HR", 21}, {"HU", 28}, {"IE", 22}, {"IL", 23}, {"IQ", 23}, {"IS", 26},
    {"IT", 27}, {"JO", 30}, {"KW", 30}, {"KZ", 20}, {"LB", 28}, {"LC", 32}, {"LI", 21}, {"LT", 20}, {"LU", 20},
    {"LV", 21}, {"LY", 25}, {"MC", 27}, {"MD", 24}, {"ME", 22}, {"MK", 19}, {"MR", 27}, {"MT", 31}, {"MU", 30},
    {"NL", 18}, {"NO", 15}, {"PK", 24}, {"PL", 28}, {"PS", 29}, {"PT", 25}, {"QA", 29}, {"RO", 24}, {"RS", 22},
    {"SA", 24}, {"SC", 31}, {"SE", 24}, {"SI", 19}, {"SK", 24}, {"SM", 27}, {"ST", 25}, {"SV", 28}, {"TL", 23},
    {"TN", 24}, {"TR", 26}, {"UA", 29}, {"VA", 22}, {"VG", 24}, {"XK", 20},
};

// ISO 13616: the number with its first four characters last is 1 modulo 97.
bool check_iban(std::string_view text, Span& match) {
  std::string number;
  std::size_t end = match.begin;
  const std::string code = {static_cast<char>(std::toupper(static_cast<unsigned char>(text[match.begin]))),
                            static_cast<char>(std::toupper(static_cast<unsigned char>(text[match.begin + 1])))};
  const auto* country =
      std::find_if(std::begin(iban_sizes), std::end(iban_sizes), [&](const Country& one) { return one.code == code; });
  if (country == std::end(iban_sizes)) return false;
  for (; end < match.end && number.size() < country->size; ++end) {
    if (is_alnum(text[end])) number += static_cast<char>(std::toupper(static_cast<unsigned char>(text[end])));
  }
  if (number.size() != country->size) return false;
  std::rotate(number.begin(), number.begin() + 4, number.end());
  int rest = 0;
  for (const char c : number) rest = is_digit(c) ? (rest * 10 + c - '0') % 97 : (rest * 100 + c - 'A' + 10) % 97;
  match.end = end;
  return rest == 1;
}

// Country codes of ITU-T E.164 by their first two digits; codes of three digits are those of their zone.
bool is_calling_code(std::string_view digits) {
  const int two = (digits[0] - '0') * 10 + digits[1] - '0';
  if (digits[0] == '1') return digits.size() == 11 && digits[1] >= '2';
  if (digits[0] == '7') return digits.size() == 11;
  constexpr int codes[] = {20, 21, 22, 23, 24, 25, 26, 27, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
                           44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66,
                           67, 68, 69, 80, 81, 82, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99};
  return std::find(std::begin(codes), std::end(codes), two) != std::end(codes);
}

bool check_phone(std::string_view text, const Span& match) {
  const char previous = before(text, match.begin);
  if (is_alnum(previous) || previous == ')' || previous == '+' || previous == '.') return false;
  if (is_alnum(after(text, match.end))) return false;
  const std::string digits = digits_of(text.substr(match.begin, match.end - match.begin));
  return digits.size() >= 8 && digits.size() <= 15 && is_calling_code(digits) &&
         !all_equal(std::string_view(digits).substr(2));
}

// Digits before the number would belong to it.
bool check_apart(std::string_view text, const Span& match) {
  const std::size_t last = match.begin == 0 ? std::string_view::npos : text.find_last_not_of(" -", match.begin - 1);
  return last == std::string_view::npos || !is_digit(text[last]);
}

bool check_ssn(std::string_view text, const Span& match) {
  const std::string_view number = text.substr(match.begin, match.end - match.begin);
  const char previous = before(text, match.begin), next = after(text, match.end);
  if (previous == '-' || previous == '.' || previous == '/' || next == '-' || next == '/') return false;
  return !number.starts_with("000") && !number.starts_with("666") && number.substr(4, 2) != "00" &&
         number.substr(7) != "0000";
}

// Four small numbers are a version, except in the private network 10.0.0.0.
bool is_ipv4(const std::string& address) {
  std::array<unsigned char, 4> octets{};
  if (::inet_pton(AF_INET, address.c_str(), octets.data()) != 1) return false;
  if (octets[0] == 0 || octets[0] == 127 || octets[0] >= 224) return false;
  return octets[0] == 10 || std::any_of(octets.begin(), octets.end(), [](unsigned char octet) { return octet >= 20; });
}

// Also finds an address that is written backwards, as the next function does.
bool check_ipv4(std::string_view text, const Span& match) {
  const char previous = before(text, match.begin), next = after(text, match.end);
  if (previous == '.' || previous == '-' || previous == '_' || next == '-' || next == '_') return false;
  if (next == '.' && is_alnum(after(text, match.end + 1))) return false;
  const std::string address(text.substr(match.begin, match.end - match.begin));
  if (!is_ipv4(address) && !is_ipv4({address.rbegin(), address.rend()})) return false;
  const std::size_t begin = match.begin > 16 ? match.begin - 16 : 0;
  const std::string_view words = text.substr(begin, match.begin - begin);
  return words.find("ersion") == std::string_view::npos && words.find("elease") == std::string_view::npos &&
         !words.ends_with("v");
}

// A short form must begin with the prefix of an assigned or a private network, because names of C++ look like others.
bool is_ipv6(const std::string& address) {
  std::array<unsigned char, 16> bytes{};
  if (address.size() < 6 || ::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return false;
  if (std::count(address.begin(), address.end(), ':') == 7) return true;
  const bool known =
      (bytes[0] & 0xe0) == 0x20 || (bytes[0] & 0xfe) == 0xfc || (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80);
  return known && address.find(':') == 4;
}

bool check_ipv6(std::string_view text, const Span& match) {
  const char previous = before(text, match.begin), next = after(text, match.end);
  if (is_alnum(previous) || previous == ':' || previous == '_' || previous == '.' || previous == '-') return false;
  if (is_alnum(next) || next == ':' || next == '_') return false;
  const std::string address(text.substr(match.begin, match.end - match.begin));
  return is_ipv6(address) || is_ipv6({address.rbegin(), address.rend()});
}

bool check_mac(std::string_view text, const Span& match) {
  const char previous = before(text, match.begin), next = after(text, match.end);
  const std::string_view address = text.substr(match.begin, match.end - match.begin);
  if (previous == ':' || previous == '-' || next == ':' || next == '-') return false;
  if (address[2] == '-' && std::none_of(address.begin(), address.end(), is_letter)) return false;
  return address.find_first_not_of("0:-") != std::string_view::npos &&
         address.find_first_not_of("fF:-") != std::string_view::npos;
}

constexpr std::string_view file_endings[] = {"png",    "jpg",   "jpeg",  "gif",  "svg",   "webp",  "service", "socket",
                                             "target", "timer", "mount", "html", "htm",   "css",   "js",      "ts",
                                             "json",   "xml",   "txt",   "so",   "dll",   "cpp",   "hpp",     "h",
                                             "c",      "py",    "conf",  "path", "slice", "scope", "device",  "patch",
                                             "tar",    "gz",    "zip",   "yaml", "yml",   "toml",  "lock",    "sh"};
constexpr std::string_view common_domains[] = {
    "com", "org", "net", "edu",  "gov", "io", "dev", "de", "uk",  "fr",   "eu",      "ch",    "at",     "nl",
    "it",  "es",  "pl",  "se",   "no",  "dk", "fi",  "be", "cz",  "ru",   "jp",      "cn",    "in",     "au",
    "ca",  "br",  "us",  "info", "biz", "co", "me",  "ai", "app", "test", "example", "local", "invalid"};

// Returns whether the place is between :// and the host of a URL, where an address is a password and a host.
bool is_in_authority(std::string_view text, std::size_t at) {
  constexpr std::size_t authority_bytes_max = 256;
  const std::size_t from = at > authority_bytes_max ? at - authority_bytes_max : 0;
  const std::string_view before_it = text.substr(from, at - from);
  const std::size_t scheme = before_it.rfind("://");
  if (scheme == std::string_view::npos) return false;
  return before_it.substr(scheme + 3).find_first_of("/?# \t\n\"'") == std::string_view::npos;
}

bool check_email(const TextView& view, const Span& match) {
  const std::string_view text = view.text();
  if (is_in_authority(text, match.begin) && before(text, match.begin) == ':') return false;
  const std::string_view address = text.substr(match.begin, match.end - match.begin);
  std::string ending(address.substr(address.rfind('.') + 1));
  std::transform(ending.begin(), ending.end(), ending.begin(), lower);
  if (std::find(std::begin(file_endings), std::end(file_endings), ending) != std::end(file_endings)) return false;
  if (address.find("..") != std::string_view::npos || address.find(".@") != std::string_view::npos) return false;
  if (view.kind() == TextView::Kind::plain) return true;
  if (std::find(std::begin(common_domains), std::end(common_domains), ending) == std::end(common_domains)) return false;
  const std::size_t at = match.begin + address.find('@');
  return view.begins_word(match.end) &&
         (view.kind() == TextView::Kind::reversed || !view.has_gap({at, at + 2}) || view.has_gap({at - 1, at + 1}));
}

constexpr std::string_view plain_paths[] = {"/dev/null",    "/dev/zero",   "/dev/random", "/dev/urandom", "/dev/stdin",
                                            "/dev/stdout",  "/dev/stderr", "/dev/tty",    "/bin/sh",      "/bin/bash",
                                            "/usr/bin/env", "/bin/true",   "/bin/false"};

bool check_path(std::string_view text, const Span& match) {
  const char previous = before(text, match.begin);
  if (is_alnum(previous) || std::string_view("_./:<~-)}]>*%@+&\\").find(previous) != std::string_view::npos) {
    // A colon also separates the paths of a list.
    if (previous != ':' || text.substr(match.begin, 2) == "//") return false;
  }
  const std::string_view path = text.substr(match.begin, match.end - match.begin);
  return std::none_of(std::begin(plain_paths), std::end(plain_paths),
                      [path](std::string_view plain) { return path.substr(0, path.find_first_of(" .,;")) == plain; });
}

// The checksum of a private key in the wallet import format.
bool check_base58(std::string_view text, const Span& match) {
  constexpr std::string_view digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  std::string bytes(38, '\0');
  for (const char c : text.substr(match.begin, match.end - match.begin)) {
    auto carry = static_cast<unsigned>(digits.find(c));
    for (std::size_t i = bytes.size(); i-- > 0;) {
      carry += 58U * static_cast<unsigned char>(bytes[i]);
      bytes[i] = static_cast<char>(carry & 0xff);
      carry >>= 8;
    }
    if (carry != 0) return false;
  }
  const std::string_view number = std::string_view(bytes).substr(bytes[0] == '\0' ? 1 : 0);
  const Hash once = sha256(number.substr(0, number.size() - 4));
  const Hash twice = sha256(view(once));
  return view(twice).substr(0, 4) == number.substr(number.size() - 4);
}

// A password that is no ordinary word: with a digit or a mark.
bool is_wordless(std::string_view text) {
  if (text.find("(") != std::string_view::npos) return false;
  const bool digit = std::any_of(text.begin(), text.end(), is_digit);
  const bool letter = std::any_of(text.begin(), text.end(), is_letter);
  const bool mark = text.find_first_of("!@#$%^&*?~+") != std::string_view::npos;
  return (letter && (digit || mark)) || (letter && text.size() >= 16 && is_random(text));
}

// Pairs of letters that are common in English words and in names of code.
constexpr std::string_view common_pairs =
    "th he in er re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne "
    "ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so rs un lo wa "
    "ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl ig tu ev ld ry mp "
    "fe bl ab gh ty op wo sa ay ex ke ui fr oo ag ey ap ck ui up ke ob ub ip da ue if qu ep ov og av ds ys";

}  // namespace

double entropy(std::string_view text) {
  std::array<std::size_t, 256> counts{};
  for (const char c : text) ++counts[static_cast<unsigned char>(c)];
  double bits = 0;
  for (const std::size_t count : counts) {
    if (count == 0) continue;
    const double part = static_cast<double>(count) / static_cast<double>(text.size());
    bits -= part * std::log2(part);
  }
  return bits;
}

bool is_random(std::string_view text) {
  std::size_t count = 0, digits = 0, changes = 0, pairs = 0, common = 0, uppers = 0;
  char previous = ' ';
  for (const char c : text.substr(0, 64)) {
    if (!is_alnum(c)) {
      previous = ' ';
      continue;
    }
    ++count;
    if (is_digit(c)) ++digits;
    if (std::isupper(static_cast<unsigned char>(c)) != 0) ++uppers;
    if (previous != ' ' && is_digit(previous) != is_digit(c)) ++changes;
    if (is_letter(previous) && is_letter(c)) {
      ++pairs;
      const std::array<char, 2> pair = {lower(previous), lower(c)};
      std::size_t at = common_pairs.find(std::string_view(pair.data(), 2));
      common += at != std::string_view::npos && at % 3 == 0 ? 1 : 0;
    }
    previous = c;
  }
  if (count < 8) return false;
  if (digits * 6 >= count && (changes * 6 >= count || (digits * 2 >= count && changes > 1))) return true;
  const bool mixed = digits > 0 || (uppers * 5 > count && uppers * 5 < count * 4);
  // About a fifth of random pairs are common, and most of those in words.
  return mixed && pairs >= 5 && (digits > 1 ? common * 2 < pairs : common * 5 < pairs * 2);
}

bool passes_checks(const Rule& rule, const TextView& view, Span& match) {
  const std::string_view text = view.text();
  const std::string_view value = text.substr(match.begin, match.end - match.begin);
  for (const std::string& tag : rule.tags) {
    if (tag == "random" && !is_random(value)) return false;
    if (tag == "wordless" && !is_wordless(value)) return false;
    if (tag == "digit" && std::none_of(value.begin(), value.end(), is_digit)) return false;
    if (tag == "card" && !check_card(text, match)) return false;
    if (tag == "iban" && !check_iban(text, match)) return false;
    if (tag == "phone" && !check_phone(text, match)) return false;
    if (tag == "apart" && !check_apart(text, match)) return false;
    if (tag == "ssn" && !check_ssn(text, match)) return false;
    if (tag == "ipv4" && !check_ipv4(text, match)) return false;
    if (tag == "ipv6" && !check_ipv6(text, match)) return false;
    if (tag == "mac" && !check_mac(text, match)) return false;
    if (tag == "email" && !check_email(view, match)) return false;
    if (tag == "path" && !check_path(text, match)) return false;
    if (tag == "base58" && !check_base58(text, match)) return false;
  }
  return true;
}

std::size_t end_of_key(std::string_view text, std::size_t begin, bool any, bool& open) {
  constexpr std::size_t digits_min = 16;  // that follow the header of a key
  if (!any) {
    std::size_t digits = 0;
    std::size_t at = begin;
    for (; at < text.size() && digits < digits_min; ++at) {
      const char c = text[at];
      if (is_alnum(c) || c == '+' || c == '/' || c == '=' || c == ':' || c == '-' || c == ',') {
        ++digits;
      } else if (std::isspace(static_cast<unsigned char>(c)) == 0 && c != '\\' && c != '"' && c != '\'') {
        return begin;
      }
    }
    if (digits < digits_min || text.substr(begin, at - begin).find("-----END") != std::string_view::npos) return begin;
  }
  const std::size_t end = text.find("-----END", begin);
  open = end == std::string_view::npos;
  return std::min(end, text.size());
}

}  // namespace muniment::bridge
