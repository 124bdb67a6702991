#include "base/json/json_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>

#include "base/limits.hpp"
#include "base/utf8.hpp"

namespace muniment::json {
namespace {

// Up to this number of keys without escapes are compared pairwise, which is faster than sorting.
constexpr std::size_t pairwise_keys_max = 12;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Examines eight bytes of a string at once: returns a nonzero value if a quote, a backslash or a control character is
// among them (the known word tricks "has a byte less than" and "has a zero byte").
std::uint64_t special_bytes(std::uint64_t word) {
  constexpr std::uint64_t ones = 0x0101010101010101U;
  constexpr std::uint64_t highs = 0x8080808080808080U;
  const auto zero_byte = [](std::uint64_t v) { return (v - ones) & ~v & highs; };
  const std::uint64_t control = (word - ones * 0x20) & ~word & highs;
  return control | zero_byte(word ^ (ones * '"')) | zero_byte(word ^ (ones * '\\'));
}

std::optional<unsigned> hex4(std::string_view text) {
  unsigned value = 0;
  if (text.size() < 4) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, value, 16);
  if (error != std::errc{} || end != text.data() + 4) return std::nullopt;
  return value;
}

bool is_high_surrogate(unsigned unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low_surrogate(unsigned unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

// Returns why a number token is refused; empty if it is accepted.
std::string_view integer_problem(std::string_view token) {
  std::int64_t as_signed = 0;
  std::uint64_t as_unsigned = 0;
  const char* const end = token.data() + token.size();
  if (std::from_chars(token.data(), end, as_signed).ec == std::errc{}) return {};
  if (std::from_chars(token.data(), end, as_unsigned).ec == std::errc{} && token[0] != '-') {
    return {};
  }
  return "an integer beyond 64 bits";
}

// `whole` and `fraction`: digits before and after the point. `exponent`: text after e.
std::string_view decimal_problem(std::string_view whole, std::string_view fraction, std::string_view exponent) {
  constexpr int exponent_max = limits::number_exponent_max;
  int written = 0;
  if (!exponent.empty()) {
    if (exponent.front() == '+') exponent.remove_prefix(1);
    const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), written);
    if (read.ec != std::errc{} || written > exponent_max || written < -exponent_max) {
      return "a number with an exponent beyond 308";
    }
  }
  // Leading zeros are not significant but shift the exponent: 0.0…01 is a small number too.
  std::size_t zeros = 0;
  while (zeros < fraction.size() && fraction[zeros] == '0') ++zeros;
  const bool below_one = whole == "0";
  const std::size_t digits = below_one ? fraction.size() - zeros : whole.size() + fraction.size();
  if (digits > limits::number_digits_max) return "a number of more than 40 significant digits";
  if (zeros > std::size_t{exponent_max}) return "a number with an exponent beyond 308";
  const int shift = below_one ? -static_cast<int>(zeros) - 1 : static_cast<int>(whole.size()) - 1;
  const bool is_zero = below_one && zeros == fraction.size();
  const int normalised = is_zero ? 0 : written + shift;
  if (normalised > exponent_max || normalised < -exponent_max) {
    return "a number with an exponent beyond 308";
  }
  return {};
}

struct Key {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool escaped = false;
};

class Walk {
 public:
  Walk(std::string_view text, std::size_t depth_max, std::vector<Node>& nodes)
      : text_(text), depth_max_(depth_max), nodes_(nodes) {}

  Status run() {
    skip_space();
    if (value(Key{}, 0)) {
      skip_space();
      if (at_ == text_.size()) return success();
      fail("text follows the value. Send one value");
    }
    return Error(Errc::invalid_argument, fmt::format("JSON at byte {}: {}.", problem_at_, problem_));
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool fail(std::string problem) { return fail_at(at_, std::move(problem)); }
  bool fail_at(std::size_t at, std::string problem) {
    problem_at_ = at;
    problem_ = std::move(problem);
    return false;
  }

  bool fail_unexpected(std::string_view expected) {
    if (at_ >= text_.size()) return fail(fmt::format("the text ends, expected {}", expected));
    return fail(fmt::format("expected {}", expected));
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool value(Key key, std::size_t depth) {
    const std::size_t index = nodes_.size();
    Node& opened = nodes_.emplace_back();
    opened.begin = static_cast<std::uint32_t>(at_);
    opened.key = key.begin;
    opened.key_end = key.end;
    opened.key_escaped = key.escaped;
    if (!content(index, depth)) return false;
    Node& closed = nodes_[index];
    closed.end = static_cast<std::uint32_t>(at_);
    closed.next = static_cast<std::uint32_t>(nodes_.size());
    return true;
  }

  bool content(std::size_t index, std::size_t depth) {
    switch (peek()) {
      case '{': nodes_[index].kind = Kind::object; return object(index, depth + 1);
      case '[': nodes_[index].kind = Kind::array; return array(depth + 1);
      case '"': nodes_[index].kind = Kind::string; return string(nodes_[index].escaped);
      case 't': nodes_[index].kind = Kind::boolean; return literal("true");
      case 'f': nodes_[index].kind = Kind::boolean; return literal("false");
      case 'n': return literal("null");
      default: nodes_[index].kind = Kind::number; return number();
    }
  }

  bool literal(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return fail_unexpected("a JSON value");
    at_ += word.size();
    return true;
  }

  bool enter(std::size_t depth) {
    if (depth > depth_max_) {
      return fail(
          fmt::format("nested deeper than {} levels, the limit. Flatten it, or send the "
                      "inner part as a string",
                      depth_max_));
    }
    ++at_;
    skip_space();
    return true;
  }

  bool object(std::size_t index, std::size_t depth) {
    if (!enter(depth)) return false;
    if (peek() == '}') return ++at_, true;
    std::size_t members = 0;
    bool any_escaped = false;
    for (;;) {
      Key key{static_cast<std::uint32_t>(at_), 0, false};
      if (peek() != '"') return fail_unexpected("a key in double quotes");
      if (!string(key.escaped)) return false;
      key.end = static_cast<std::uint32_t>(at_);
      any_escaped |= key.escaped;
      skip_space();
      if (peek() != ':') return fail_unexpected("\":\" after a key");
      ++at_;
      skip_space();
      if (!value(key, depth)) return false;
      ++members;
      skip_space();
      if (peek() == '}') break;
      if (peek() != ',') return fail_unexpected("\",\" or \"}\" after a member");
      ++at_;
      skip_space();
    }
    ++at_;
    return members < 2 || keys_differ(index, members, any_escaped);
  }

  bool array(std::size_t depth) {
    if (!enter(depth)) return false;
    if (peek() == ']') return ++at_, true;
    for (;;) {
      if (!value(Key{}, depth)) return false;
      skip_space();
      if (peek() == ']') return ++at_, true;
      if (peek() != ',') return fail_unexpected("\",\" or \"]\" after an item");
      ++at_;
      skip_space();
    }
  }

  bool string(bool& escaped) {
    ++at_;
    for (;;) {
      for (; text_.size() - at_ >= 8; at_ += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text_.data() + at_, 8);
        if (special_bytes(word) != 0) break;
      }
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20) {
        ++at_;
      }
      if (at_ >= text_.size()) return fail("the text ends inside a string");
      if (text_[at_] == '"') return ++at_, true;
      if (text_[at_] != '\\') {
        return fail(fmt::format("a control character inside a string. Write it as \\u{:04x}",
                                static_cast<unsigned>(text_[at_])));
      }
      escaped = true;
      if (!escape()) return false;
    }
  }

  bool escape() {
    const std::string_view rest = text_.substr(at_ + 1);
    if (rest.empty() || std::string_view("\"\\/bfnrtu").find(rest[0]) == std::string_view::npos) {
      return fail("an unknown escape");
    }
    if (rest[0] != 'u') return at_ += 2, true;
    const auto unit = hex4(rest.substr(1));
    if (!unit) return fail("\\u without four hexadecimal digits");
    if (*unit == 0) return fail("\\u0000 is not allowed. Send such bytes as an artifact or base64");
    if (is_low_surrogate(*unit)) return fail("a lone surrogate. Send such text as an artifact");
    if (!is_high_surrogate(*unit)) return at_ += 6, true;
    const auto low = rest.substr(5).starts_with("\\u") ? hex4(rest.substr(7)) : std::nullopt;
    if (!low || !is_low_surrogate(*low)) {
      return fail("a lone surrogate. Send such text as an artifact");
    }
    return at_ += 12, true;
  }

  std::string_view digits() {
    const std::size_t from = at_;
    while (is_digit(peek())) ++at_;
    return text_.substr(from, at_ - from);
  }

  bool number() {
    const std::size_t from = at_;
    const bool negative = peek() == '-';
    if (negative) ++at_;
    const std::string_view whole = digits();
    if (whole.empty()) return at_ = from, fail_unexpected("a JSON value");
    if (whole.size() > 1 && whole[0] == '0') {
      return at_ = from, fail("a number with a leading zero");
    }
    std::string_view fraction;
    std::string_view exponent;
    const bool has_point = peek() == '.';
    if (has_point) {
      ++at_;
      fraction = digits();
      if (fraction.empty()) return fail_unexpected("a digit after the point");
    }
    const bool has_exponent = peek() == 'e' || peek() == 'E';
    if (has_exponent) {
      const std::size_t sign = ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (digits().empty()) return fail_unexpected("a digit in the exponent");
      exponent = text_.substr(sign, at_ - sign);
    }
    const std::string_view token = text_.substr(from, at_ - from);
    const std::string_view problem =
        has_point || has_exponent ? decimal_problem(whole, fraction, exponent) : integer_problem(token);
    if (problem.empty()) return true;
    return fail_at(from, fmt::format("{}. Send it as a string", problem));
  }

  std::string_view key_text(const Node& node) const { return text_.substr(node.key + 1, node.key_end - node.key - 2); }

  bool keys_differ(std::size_t object, std::size_t members, bool any_escaped) {
    if (members > pairwise_keys_max || any_escaped) return sorted_keys_differ(object, members);
    std::string_view seen[pairwise_keys_max];
    std::size_t count = 0;
    for (std::size_t i = object + 1; i < nodes_.size(); i = nodes_[i].next) {
      const std::string_view key = key_text(nodes_[i]);
      for (std::size_t j = 0; j < count; ++j) {
        if (seen[j] == key) return fail_duplicate(key, nodes_[i].key);
      }
      seen[count++] = key;
    }
    return true;
  }

  bool sorted_keys_differ(std::size_t object, std::size_t members) {
    struct Entry {
      std::string_view key;
      std::uint32_t at;
    };
    std::deque<std::string> unescaped;  // its elements do not move
    std::vector<Entry> entries;
    entries.reserve(members);
    for (std::size_t i = object + 1; i < nodes_.size(); i = nodes_[i].next) {
      std::string_view key = key_text(nodes_[i]);
      if (nodes_[i].key_escaped) key = unescaped.emplace_back(unescape(key));
      entries.push_back({key, nodes_[i].key});
    }
    // Compares lengths first, so that most comparisons need not read the bytes.
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      if (a.key.size() != b.key.size()) return a.key.size() < b.key.size();
      const int order = a.key.compare(b.key);
      return order != 0 ? order < 0 : a.at < b.at;
    });
    const auto twin =
        std::adjacent_find(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.key == b.key; });
    if (twin == entries.end()) return true;
    return fail_duplicate(twin[1].key, twin[1].at);
  }

  bool fail_duplicate(std::string_view key, std::size_t at) {
    std::string shown(key.substr(0, 64));
    // The cut may have split a character.
    shown.resize(std::min(shown.size(), first_invalid_utf8(shown)));
    return fail_at(at, fmt::format("the key {} occurs twice. Keep one", quote(shown)));
  }

  std::string_view text_;
  const std::size_t depth_max_;
  std::vector<Node>& nodes_;
  std::size_t at_ = 0;
  std::size_t problem_at_ = 0;
  std::string problem_;
};

}  // namespace

Status walk(std::string_view text, std::size_t depth_max, std::vector<Node>& nodes) {
  nodes.clear();
  return Walk(text, depth_max, nodes).run();
}

}  // namespace muniment::json
