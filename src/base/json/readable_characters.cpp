#include "base/json/readable_characters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/utf8.hpp"

namespace muniment {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// Returns four hexadecimal digits at `at` as a number.
std::optional<unsigned> hex4(std::string_view text, std::size_t at) {
  if (at > text.size() || text.size() - at < 4) return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(at, 4)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit);
  }
  return value;
}
bool is_high(std::optional<unsigned> unit) { return unit && *unit >= 0xD800 && *unit < 0xDC00; }
bool is_low(std::optional<unsigned> unit) { return unit && *unit >= 0xDC00 && *unit < 0xE000; }

class Repair {
 public:
  explicit Repair(std::string_view json) : json_(json) { out_.text.reserve(json.size()); }

  ReadableText run() {
    while (at_ < json_.size()) {
      const auto byte = static_cast<unsigned char>(json_[at_]);
      if (byte >= 0x80) {
        take_sequence();
      } else if (in_string_ && byte == '\\') {
        take_escape();
      } else if (byte == 0 || (in_string_ && byte < 0x20)) {
        take_control(byte);
      } else {
        if (byte == '"') in_string_ = !in_string_;
        copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  void copy(std::size_t count) {
    out_.text += json_.substr(at_, count);
    at_ = std::min(at_ + count, json_.size());
  }

  // Replaces `count` bytes of the source by `text`.
  void put(std::string_view text, std::size_t count) {
    out_.text += text;
    at_ += count;
    if (text.size() != count) out_.shifts.emplace_back(out_.text.size(), at_);
  }

  void take_sequence() {
    const CodePoint decoded = decode_utf8(json_, at_);
    if (decoded.size > 0) return copy(decoded.size);
    ++out_.replaced;
    put(replacement, 1);
  }

  void take_control(unsigned char byte) {
    if (byte != 0) return put(fmt::format("\\u{:04x}", byte), 1);
    ++out_.replaced;
    put(in_string_ ? replacement : std::string_view(" "), 1);
  }

  void take_escape() {
    if (at_ + 1 >= json_.size() || json_[at_ + 1] != 'u') return copy(2);
    const auto unit = hex4(json_, at_ + 2);
    if (!unit) return copy(2);
    const bool is_paired = is_high(unit) && json_.substr(at_ + 6, 2) == "\\u" && is_low(hex4(json_, at_ + 8));
    if (is_paired) return copy(12);
    if (*unit != 0 && !is_high(unit) && !is_low(unit)) return copy(6);
    ++out_.replaced;
    put("\\ufffd", 6);
  }

  const std::string_view json_;
  std::size_t at_ = 0;
  bool in_string_ = false;
  ReadableText out_;
};

}  // namespace

std::size_t ReadableText::source_offset(std::size_t offset) const {
  const auto after = std::upper_bound(shifts.begin(), shifts.end(), offset,
                                      [](std::size_t wanted, const auto& shift) { return wanted < shift.first; });
  if (after == shifts.begin()) return offset;
  const auto& [here, there] = *std::prev(after);
  return there + (offset - here);
}

ReadableText with_readable_characters(std::string_view json) { return Repair(json).run(); }

}  // namespace muniment
