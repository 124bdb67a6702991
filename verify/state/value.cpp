#include "verify/state/value.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/json/jsonb.hpp"

namespace muniment::verify {
namespace {

struct Decimal {
  bool negative = false;
  std::string digits;         // no zeros at either end; empty for zero
  std::int64_t exponent = 0;  // exponent of the last digit
  bool operator==(const Decimal&) const = default;
};

Decimal decimal_of(std::string_view token) {
  Decimal decimal;
  decimal.negative = token.starts_with('-');
  if (decimal.negative) token.remove_prefix(1);
  const std::size_t mark = token.find_first_of("eE");
  if (mark != std::string_view::npos) {
    std::string_view exponent = token.substr(mark + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    std::from_chars(exponent.data(), exponent.data() + exponent.size(), decimal.exponent);
    token = token.substr(0, mark);
  }
  const std::size_t point = token.find('.');
  decimal.digits = token.substr(0, point);
  if (point != std::string_view::npos) {
    decimal.digits += token.substr(point + 1);
    decimal.exponent -= static_cast<std::int64_t>(token.size() - point - 1);
  }
  decimal.digits.erase(0, std::min(decimal.digits.find_first_not_of('0'), decimal.digits.size()));
  while (decimal.digits.ends_with('0')) {
    decimal.digits.pop_back();
    ++decimal.exponent;
  }
  return decimal.digits.empty() ? Decimal{} : decimal;
}

bool same_members(const json::Value& a, const json::Value& b) {
  if (a.size() != b.size()) return false;
  for (const json::Value member : a) {
    const json::Value other = b[member.key()];
    if (!other || !same_value(member, other)) return false;
  }
  return true;
}

bool same_items(const json::Value& a, const json::Value& b) {
  auto left = a.begin(), right = b.begin();
  const auto left_end = a.end(), right_end = b.end();
  for (; left != left_end && right != right_end; ++left, ++right) {
    if (!same_value(*left, *right)) return false;
  }
  return !(left != left_end) && !(right != right_end);
}

}  // namespace

Changeable Changeable::object() {
  Changeable value;
  value.kind = json::Kind::object;
  return value;
}

Changeable Changeable::from(const json::Value& value) {
  Changeable made;
  made.kind = value.kind();
  switch (value.kind()) {
    case json::Kind::null: break;
    case json::Kind::boolean:
    case json::Kind::number: made.text = value.source(); break;
    case json::Kind::string: made.text = value.string_or(""); break;
    case json::Kind::array:
      for (const json::Value item : value) made.items.push_back(from(item));
      break;
    case json::Kind::object:
      for (const json::Value member : value) made.members.emplace(member.key(), from(member));
      break;
  }
  return made;
}

std::size_t Changeable::levels() const {
  if (kind != json::Kind::array && kind != json::Kind::object) return 0;
  std::size_t below = 0;
  for (const Changeable& item : items) below = std::max(below, item.levels());
  for (const auto& [name, member] : members) below = std::max(below, member.levels());
  return below + 1;
}

void write_quoted(std::string_view text, std::string& out) {
  constexpr std::string_view hex = "0123456789abcdef";
  const auto plain = [](char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; };
  out += '"';
  while (!text.empty()) {
    const auto special = std::find_if_not(text.begin(), text.end(), plain);
    out.append(text.begin(), special);
    text.remove_prefix(static_cast<std::size_t>(special - text.begin()));
    if (text.empty()) break;
    const char c = text.front();
    text.remove_prefix(1);
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\t': out += "\\t"; break;
      case '\n': out += "\\n"; break;
      case '\f': out += "\\f"; break;
      case '\r': out += "\\r"; break;
      default:
        out += "\\u00";
        out += hex[static_cast<unsigned char>(c) >> 4];
        out += hex[static_cast<unsigned char>(c) & 15];
    }
  }
  out += '"';
}

void Changeable::write(std::string& out) const {
  switch (kind) {
    case json::Kind::null: out += "null"; return;
    case json::Kind::boolean:
    case json::Kind::number: out += text; return;
    case json::Kind::string: write_quoted(text, out); return;
    case json::Kind::array: {
      out += '[';
      for (const Changeable& item : items) {
        if (&item != &items.front()) out += ',';
        item.write(out);
      }
      out += ']';
      return;
    }
    case json::Kind::object: {
      out += '{';
      const char* separator = "";
      for (const auto& [name, member] : members) {
        out += separator;
        separator = ",";
        write_quoted(name, out);
        out += ':';
        member.write(out);
      }
      out += '}';
      return;
    }
  }
}

std::string Changeable::canonical() const {
  std::string out;
  write(out);
  return out;
}

bool same_number(std::string_view a, std::string_view b) { return decimal_of(a) == decimal_of(b); }

bool same_value(const json::Value& a, const json::Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case json::Kind::null: return true;
    case json::Kind::boolean: return a.source() == b.source();
    case json::Kind::number: return same_number(a.source(), b.source());
    case json::Kind::string: return a.as_string() == b.as_string();
    case json::Kind::array: return same_items(a, b);
    case json::Kind::object: return same_members(a, b);
  }
  return false;
}

bool same_jsonb(const std::optional<std::string>& wanted, const std::optional<std::string>& held) {
  if (!wanted || !held) return wanted == held;
  const std::string text = json::from_jsonb(*held);
  const auto left = json::parse(*wanted), right = json::parse(text);
  return left && right && same_value(left->root(), right->root());
}

}  // namespace muniment::verify
