#include "adapters/import/otlp/otlp_value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "adapters/import/events.hpp"
#include "base/clock.hpp"
#include "base/crypto/base64.hpp"
#include "base/crypto/sha256.hpp"

namespace muniment::cli {
namespace {

template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Accepts a number in JSON syntax, since protobuf JSON writes 64-bit integers as text.
std::optional<std::int64_t> int_value(const json::Value& value) {
  if (const auto number = value.as_int()) return number;
  const auto text = value.as_string();
  const auto number = text ? whole_number<std::int64_t>(*text) : std::nullopt;
  // "007" and "-0" are not canonical numbers and remain text.
  return number && std::to_string(*number) == *text ? number : std::nullopt;
}

// 7.0 is 7.
std::optional<std::int64_t> whole_double(const json::Value& value) {
  constexpr double exact_max = 9'007'199'254'740'992.0;
  const auto number = value.as_double();
  if (!number || *number < 0 || *number > exact_max || *number != std::floor(*number)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::string camel_case(std::string_view name) {
  std::string camel;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool joins = name[i] == '_' && i > 0 && i + 1 < name.size() && name[i + 1] >= 'a' && name[i + 1] <= 'z';
    camel.push_back(joins ? static_cast<char>(name[++i] - 'a' + 'A') : name[i]);
  }
  return camel;
}

// Names of attributes are values ("key"), so every member is a field. Nesting is at most json_depth_max.
void write_camel_case(json::Writer& out, const json::Value& value) {
  if (value.is(json::Kind::object)) {
    out.begin_object();
    std::set<std::string> names;
    for (const json::Value member : value) {
      std::string name = camel_case(member.key());
      while (!names.insert(name).second) name.push_back('_');
      write_camel_case(out.key(name), member);
    }
    out.end_object();
  } else if (value.is(json::Kind::array)) {
    out.begin_array();
    for (const json::Value one : value) write_camel_case(out, one);
    out.end_array();
  } else {
    out.raw(value.source());
  }
}

void write_list(json::Writer& out, const json::Value& values) {
  out.begin_array();
  for (const json::Value value : values) write_any(out, value);
  out.end_array();
}

// A list with a repeated or missing name remains a list.
void write_pairs(json::Writer& out, const json::Value& pairs) {
  std::set<std::string> names;
  bool plain = true;
  for (const json::Value pair : pairs)
    plain = plain && pair["key"].is(json::Kind::string) && pair.size() == 2 &&
            names.insert(pair["key"].string_or("")).second;
  if (!plain) {
    write_value(out, pairs);
    return;
  }
  out.begin_object();
  for (const json::Value pair : pairs) write_any(out.key(pair["key"].string_or("")), pair["value"]);
  out.end_object();
}

}  // namespace

void write_any(json::Writer& out, const json::Value& any) {
  json::Value only;
  if (any.is(json::Kind::object) && any.size() == 1) {
    for (const json::Value member : any) only = member;
  }
  const std::string form = only.key();
  if (form == "arrayValue" && (only["values"].is(json::Kind::array) || only.size() == 0)) {
    write_list(out, only["values"]);
  } else if (form == "kvlistValue" && (only["values"].is(json::Kind::array) || only.size() == 0)) {
    write_pairs(out, only["values"]);
  } else if (const auto number = form == "intValue" ? int_value(only) : std::nullopt) {
    out.number(*number);
  } else if (form == "stringValue" || form == "boolValue" || form == "intValue" || form == "doubleValue" ||
             form == "bytesValue") {
    write_value(out, only);
  } else if (any.is(json::Kind::object) && any.size() == 0) {
    out.null();
  } else if (any.present()) {
    write_value(out, any);
  } else {
    out.null();
  }
}

std::string any_json(const json::Value& any) {
  json::Writer out;
  write_any(out, any);
  return std::move(out).text();
}

std::string any_text(const json::Value& any) {
  if (const auto text = any["stringValue"].as_string()) return *text;
  if (!any.present()) return {};
  if (const auto text = any["intValue"].as_string()) return *text;
  return any_json(any);
}

std::optional<std::int64_t> any_int(const json::Value& any) { return int_value(any["intValue"]); }

std::optional<std::int64_t> any_count(const json::Value& any) {
  constexpr std::int64_t count_max = 1'000'000'000'000;
  std::optional<std::int64_t> count = any_int(any);
  if (!count) count = int_value(any["stringValue"]);
  json::Value number = any["doubleValue"] ? any["doubleValue"] : any["stringValue"];
  if (const auto words = number.as_string(); !count && words) {
    const auto document = json::parse(*words);
    count = document ? whole_double(document->root()) : std::nullopt;
  } else if (!count) {
    count = whole_double(number);
  }
  return count && *count >= 0 && *count <= count_max ? count : std::nullopt;
}

std::string snake_case(std::string_view name) {
  std::string snake;
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper) snake.push_back('_');
    snake.push_back(is_upper ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return snake;
}

std::string camel_case_json(const json::Value& value) {
  json::Writer out;
  write_camel_case(out, value);
  return std::move(out).text();
}

std::optional<std::uint64_t> otlp_nanos(const json::Value& value) {
  const auto text = value.as_string();
  const auto nanos = whole_number<std::uint64_t>(text                           ? std::string_view(*text)
                                                 : value.is(json::Kind::number) ? value.source()
                                                                                : std::string_view());
  return nanos && *nanos > 0 ? nanos : std::nullopt;
}

std::string otlp_time(std::optional<std::uint64_t> nanos) {
  return nanos ? format_time(Time{static_cast<std::int64_t>(*nanos / 1'000)}) : std::string();
}

std::string otlp_id(const json::Value& value, std::size_t bytes) {
  const auto text = value.as_plain_string();
  if (!text) return {};
  std::optional<std::string> id;
  if (text->size() == 2 * bytes) id = from_hex(*text);
  if (!id && text->size() == (bytes + 2) / 3 * 4) id = from_base64(*text);
  if (!id || id->size() != bytes || id->find_first_not_of('\0') == std::string::npos) return {};
  return to_hex(*id);
}

void write_members(json::Writer& out, const json::Value& object, std::initializer_list<std::string_view> placed) {
  for (const json::Value member : object) {
    const std::string key = member.key();
    if (member.is(json::Kind::null) || std::find(placed.begin(), placed.end(), key) != placed.end()) continue;
    write_value(out.key(key), member);
  }
}

OtlpAttributes::OtlpAttributes(const json::Value& list) {
  for (const json::Value pair : list) all_.push_back({pair["key"].string_or(""), pair["value"], pair});
}

json::Value OtlpAttributes::find(std::string_view key) const {
  for (const One& one : all_) {
    if (one.key == key) return one.value;
  }
  return {};
}

std::string OtlpAttributes::text(std::string_view key) const { return any_text(find(key)); }

}  // namespace muniment::cli
