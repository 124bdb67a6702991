// Implements json::Writer, json::quote and json::canonical (json.hpp), and the string functions of json_walk.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json/json.hpp"
#include "base/json/json_walk.hpp"
#include "base/utf8.hpp"

namespace muniment::json {
namespace {

char32_t unit_at(std::string_view text, std::size_t at) {
  unsigned unit = 0;
  std::from_chars(text.data() + at, text.data() + at + 4, unit, 16);
  return unit;
}

// Returns the character that an escape denotes, for all escapes except \u.
char simple_escape(char c) {
  switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return c;  // a quote, a backslash, a slash
  }
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; break;
    case '\\': out += "\\\\"; break;
    case '\b': out += "\\b"; break;
    case '\f': out += "\\f"; break;
    case '\n': out += "\\n"; break;
    case '\r': out += "\\r"; break;
    case '\t': out += "\\t"; break;
    default: fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  }
}

void append_canonical(std::string& out, const Value& value);

void append_canonical_object(std::string& out, const Value& object) {
  std::vector<std::pair<std::string, Value>> members;
  for (Value member : object) members.emplace_back(member.key(), member);
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  out.push_back('{');
  for (const auto& [key, member] : members) {
    if (out.back() != '{') out.push_back(',');
    append_quoted(out, key);
    out.push_back(':');
    append_canonical(out, member);
  }
  out.push_back('}');
}

void append_canonical(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::object: append_canonical_object(out, value); return;
    case Kind::array: {
      out.push_back('[');
      bool comma = false;
      for (Value item : value) {
        if (comma) out.push_back(',');
        comma = true;
        append_canonical(out, item);
      }
      out.push_back(']');
      return;
    }
    case Kind::string:
      if (value.as_plain_string()) {
        out += value.source();  // without an escape, the source is the only spelling
      } else {
        append_quoted(out, *value.as_string());
      }
      return;
    case Kind::null:
    case Kind::boolean:
    case Kind::number: out += value.source(); return;
  }
}

}  // namespace

std::string unescape(std::string_view inside) {
  std::string text;
  text.reserve(inside.size());
  for (std::size_t at = 0; at < inside.size();) {
    const std::size_t backslash = std::min(inside.find('\\', at), inside.size());
    text += inside.substr(at, backslash - at);
    at = backslash;
    if (at == inside.size()) break;
    if (inside[at + 1] != 'u') {
      text.push_back(simple_escape(inside[at + 1]));
      at += 2;
      continue;
    }
    char32_t code_point = unit_at(inside, at + 2);
    at += 6;
    if (code_point >= 0xD800 && code_point <= 0xDBFF) {
      code_point = 0x10000 + ((code_point - 0xD800) << 10) + (unit_at(inside, at + 2) - 0xDC00);
      at += 6;
    }
    append_utf8(text, code_point);
  }
  return text;
}

void append_quoted(std::string& out, std::string_view text) {
  out.reserve(out.size() + text.size() + 2);
  out.push_back('"');
  std::size_t plain = 0;  // start of the current span without changes
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\') {
      ++at;
      continue;
    }
    const CodePoint here = decode_utf8(text, at);
    if (here.size > 1) {
      at += here.size;
      continue;
    }
    out += text.substr(plain, at - plain);
    if (here.size == 0) {
      out += "\xEF\xBF\xBD";
    } else {
      append_escaped(out, text[at]);
    }
    plain = ++at;
  }
  out += text.substr(plain);
  out.push_back('"');
}

std::string quote(std::string_view text) {
  std::string quoted;
  append_quoted(quoted, text);
  return quoted;
}

std::string canonical(const Value& value) {
  std::string text;
  if (!value.present()) return text;
  text.reserve(value.source().size());
  append_canonical(text, value);
  return text;
}

void Writer::separate() {
  if (comma_) text_.push_back(',');
  comma_ = true;
}

Writer& Writer::begin_object() {
  separate();
  text_.push_back('{');
  comma_ = false;
  return *this;
}

Writer& Writer::end_object() {
  text_.push_back('}');
  comma_ = true;
  return *this;
}

Writer& Writer::begin_array() {
  separate();
  text_.push_back('[');
  comma_ = false;
  return *this;
}

Writer& Writer::end_array() {
  text_.push_back(']');
  comma_ = true;
  return *this;
}

Writer& Writer::key(std::string_view name) {
  separate();
  append_quoted(text_, name);
  text_.push_back(':');
  comma_ = false;
  return *this;
}

Writer& Writer::string(std::string_view text) {
  separate();
  append_quoted(text_, text);
  return *this;
}

Writer& Writer::number(std::int64_t value) {
  separate();
  fmt::format_to(std::back_inserter(text_), "{}", value);
  return *this;
}

Writer& Writer::number(double value) {
  if (!std::isfinite(value)) return null();
  if (std::fpclassify(value) == FP_SUBNORMAL) value = 0;  // its exponent exceeds the limit
  separate();
  char digits[32];
  // Without an exponent a large number would read as an integer beyond 64 bits.
  const auto written = std::abs(value) >= 1e15
                           ? std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific)
                           : std::to_chars(digits, digits + sizeof digits, value);
  text_.append(digits, written.ptr);
  return *this;
}

Writer& Writer::boolean(bool value) { return raw(value ? "true" : "false"); }

Writer& Writer::null() { return raw("null"); }

Writer& Writer::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

Writer& Writer::member(std::string_view name, const std::vector<std::string>& texts) {
  key(name).begin_array();
  for (const std::string& text : texts) string(text);
  return end_array();
}

Writer& Writer::member(std::string_view name, std::string_view text) { return key(name).string(text); }

Writer& Writer::member(std::string_view name, std::int64_t value) { return key(name).number(value); }

Writer& Writer::member(std::string_view name, bool value) { return key(name).boolean(value); }

Writer& Writer::member(std::string_view name, double value) { return key(name).number(value); }

Writer& Writer::raw_member(std::string_view name, std::string_view json) { return key(name).raw(json); }

}  // namespace muniment::json
