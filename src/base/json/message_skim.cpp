#include "base/json/message_skim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <system_error>

#include "base/json/json.hpp"
#include "base/json/readable_characters.hpp"
#include "base/utf8.hpp"

namespace muniment::json {
namespace {

constexpr std::int64_t exponent_max = 1'000'000;
constexpr std::string_view blanks = " \t\r\n";

// Returns the offset after the string that begins at `at`.
std::size_t skip_string(std::string_view text, std::size_t at) {
  ++at;
  while ((at = text.find_first_of("\"\\", at)) != std::string_view::npos) {
    if (text[at] == '"') return at + 1;
    at += 2;  // a backslash and the escaped character
  }
  return text.size();
}

bool is_complete(std::string_view text, std::size_t begin, std::size_t end) {
  if (end <= begin) return false;
  const char first = text[begin];
  if (first == '"') return end > begin + 1 && text[end - 1] == '"';
  if (first == '{' || first == '[') return text[end - 1] == (first == '{' ? '}' : ']');
  return end < text.size();
}

// Returns the text of a key or method name with escapes resolved.
std::string plain(std::string_view quoted) {
  if (quoted.find('\\') != std::string_view::npos) return string_of(quoted).value_or("");
  return quoted.size() >= 2 ? std::string(quoted.substr(1, quoted.size() - 2)) : std::string();
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

// Returns the value of a number as text: its digits without leading or trailing zeros and the exponent of the last one.
// Returns nullopt if it is not a number or its exponent is out of range.
std::optional<std::string> number_key(std::string_view number) {
  const bool negative = number.starts_with('-');
  std::string_view rest = number.substr(negative ? 1 : 0);
  std::int64_t exponent = 0;
  if (const std::size_t e = rest.find_first_of("eE"); e != std::string_view::npos) {
    const std::string_view power = rest.substr(e + 1 + (rest.substr(e + 1).starts_with('+') ? 1 : 0));
    const auto read = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (read.ec != std::errc() || read.ptr != power.data() + power.size() || std::abs(exponent) > exponent_max)
      return std::nullopt;
    rest = rest.substr(0, e);
  }
  std::string digits(rest);
  if (const std::size_t point = digits.find('.'); point != std::string::npos) {
    exponent -= static_cast<std::int64_t>(digits.size() - point - 1);
    digits.erase(point, 1);
  }
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return "0";
  const std::size_t last = digits.find_last_not_of('0');
  exponent += static_cast<std::int64_t>(digits.size() - last - 1);
  digits.resize(last + 1);
  return fmt::format("{}{}e{}", negative ? "-" : "", digits, exponent);
}

// Returns whether it is one string of JSON, also one with an escape that the log refuses.
bool is_string(std::string_view value) {
  if (!value.starts_with('"') || first_invalid_utf8(value) != std::string_view::npos) return false;
  if (std::any_of(value.begin(), value.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    return false;
  const std::string readable = with_readable_characters(value).text;
  return parse(readable).ok();
}

// Returns whether it is one number of JSON, of any size.
bool is_number(std::string_view value) {
  const auto skip_digits = [&value] {
    const std::size_t end = std::min(value.find_first_not_of("0123456789"), value.size());
    value.remove_prefix(end);
    return end;
  };
  const auto skip_one_of = [&value](std::string_view set) {
    const bool found = !value.empty() && set.find(value.front()) != std::string_view::npos;
    if (found) value.remove_prefix(1);
    return found;
  };
  skip_one_of("-");
  const bool zero = value.starts_with('0');
  const std::size_t digits = skip_digits();
  if (digits == 0 || (zero && digits > 1)) return false;
  if (skip_one_of(".") && skip_digits() == 0) return false;
  if (!skip_one_of("eE")) return value.empty();
  skip_one_of("+-");
  return skip_digits() > 0 && value.empty();
}

}  // namespace

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  const std::size_t found = text.find_first_not_of(blanks, at);
  return found == std::string_view::npos ? text.size() : found;
}

std::size_t skip_value(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  if (text[at] == '"') return skip_string(text, at);
  if (text[at] != '{' && text[at] != '[') {
    const std::size_t end = text.find_first_of(",]} \t\r\n", at);
    return end == std::string_view::npos ? text.size() : end;
  }
  std::size_t depth = 0;
  while ((at = text.find_first_of("\"{}[]", at)) != std::string_view::npos) {
    if (text[at] == '"') {
      at = skip_string(text, at);
      continue;
    }
    const bool opens = text[at] == '{' || text[at] == '[';
    depth += opens ? 1 : 0;
    ++at;
    if (!opens && --depth == 0) return at;
  }
  return text.size();
}

void each_member(std::string_view object,
                 const std::function<void(std::string_view key, std::string_view value)>& each) {
  std::size_t at = skip_blanks(object, 0);
  if (at >= object.size() || object[at] != '{') return;
  at = skip_blanks(object, at + 1);
  while (at < object.size() && object[at] == '"') {
    const std::size_t key_end = skip_string(object, at);
    const std::string_view key = object.substr(at, key_end - at);
    const std::size_t colon = skip_blanks(object, key_end);
    if (colon >= object.size() || object[colon] != ':') return;
    const std::size_t begin = skip_blanks(object, colon + 1);
    const std::size_t end = skip_value(object, begin);
    if (!is_complete(object, begin, end)) return;
    each(key, object.substr(begin, end - begin));
    at = skip_blanks(object, end);
    if (at >= object.size() || object[at] != ',') return;
    at = skip_blanks(object, at + 1);
  }
}

std::string_view member_of(std::string_view object, std::string_view key) {
  std::string_view found;
  each_member(object, [&](std::string_view name, std::string_view value) {
    if (plain(name) == key) found = value;
  });
  return found;
}

std::vector<std::string_view> items_of(std::string_view array) {
  std::vector<std::string_view> items;
  std::size_t at = skip_blanks(array, 0);
  if (at >= array.size() || array[at] != '[') return items;
  at = skip_blanks(array, at + 1);
  while (at < array.size() && array[at] != ']') {
    const std::size_t end = skip_value(array, at);
    if (end == at) break;
    items.push_back(array.substr(at, end - at));
    at = skip_blanks(array, end);
    if (at >= array.size() || array[at] != ',') break;
    at = skip_blanks(array, at + 1);
  }
  return items;
}

std::optional<std::string> string_of(std::string_view value) {
  if (value.empty() || value.front() != '"') return std::nullopt;
  const auto document = parse(value);
  return document ? document->root().as_string() : std::nullopt;
}

Envelope skim_message(std::string_view message) {
  Envelope found;
  each_member(message, [&found](std::string_view key, std::string_view value) {
    const std::string name = plain(key);
    if (name == "id") found.id = value;
    if (name == "method" && value.front() == '"') found.method = plain(value);
    if (name == "params") found.params = value;
    if (name == "result") found.result = value;
    if (name == "error") found.error = value;
  });
  return found;
}

std::string id_key(std::string_view id) {
  if (const auto text = string_of(id)) return quote(*text);
  return number_key(id).value_or(std::string(id));
}

bool is_batch(std::string_view line) {
  const std::size_t at = skip_blanks(line, 0);
  return at < line.size() && line[at] == '[';
}

std::vector<std::string_view> messages_of(std::string_view line) {
  if (is_batch(line)) return items_of(line);
  return {line};
}

// In a valid message the last brace closes the outermost object, so the members directly before it belong to the
// message.
std::string id_of_cut_message(std::string_view beginning, std::string_view end) {
  if (const Envelope seen = skim_message(beginning); seen.has_id()) return std::string(seen.id);
  std::string_view rest = trimmed(end);
  if (!rest.ends_with('}')) return {};
  rest = trimmed(rest.substr(0, rest.size() - 1));
  constexpr std::string_view version = "\"2.0\"";
  if (rest.ends_with(version)) {
    const std::size_t comma = rest.rfind(',');
    if (comma == std::string_view::npos || rest.substr(comma).find("\"jsonrpc\"") == std::string_view::npos) return {};
    rest = trimmed(rest.substr(0, comma));
  }
  const std::size_t key = rest.rfind("\"id\"");
  if (key == std::string_view::npos || key == 0) return {};
  const std::string_view before = trimmed(rest.substr(0, key));
  const std::string_view after = trimmed(rest.substr(key + 4));
  if (!before.ends_with(',') && !before.ends_with('{')) return {};
  if (!after.starts_with(':')) return {};
  const std::string_view value = trimmed(after.substr(1));
  if (value.empty() || skip_value(value, 0) != value.size() || value == "null") return {};
  return std::string(value);
}

std::string id_to_answer(std::string_view message) {
  const Envelope seen = skim_message(message);
  if (!seen.result.empty() || !seen.error.empty()) return {};
  std::string id = id_of_cut_message(message, message);
  return is_string(id) || is_number(id) ? id : std::string();
}

}  // namespace muniment::json
