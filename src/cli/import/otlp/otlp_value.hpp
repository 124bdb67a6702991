// The values of OTLP/JSON (opentelemetry-proto 1.x): AnyValue, lists of attributes, ids, times. Fields that are 64 bits
// wide may be numbers or their text, ids hexadecimal or (as plain protobuf JSON has them) base64.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::cli {

// An AnyValue as plain JSON. What is none of its forms is written as it is, and what is nested too deeply as text.
void write_any(json::Writer& out, const json::Value& any);
std::string any_json(const json::Value& any);
// A stringValue; a number or a boolean as it is written; otherwise the JSON of it.
std::string any_text(const json::Value& any);
std::optional<std::int64_t> any_int(const json::Value& any);

// A 64-bit field: a number, or the text of one. nullopt: absent, zero, negative, or no number.
std::optional<std::uint64_t> otlp_nanos(const json::Value& value);
// RFC 3339 with microseconds; empty for nullopt.
std::string otlp_time(std::optional<std::uint64_t> nanos);

// The bytes of an id of `bytes` bytes as lower-case hexadecimal; empty where it is none, or zero.
std::string otlp_id(const json::Value& value, std::size_t bytes);

// The members of an object but those named, into the object that is being written; null says nothing.
void write_members(json::Writer& out, const json::Value& object, std::initializer_list<std::string_view> placed);

// A span's or an event's attributes by name. The first of two with one name counts.
class OtlpAttributes {
 public:
  OtlpAttributes() = default;
  explicit OtlpAttributes(const json::Value& list);

  json::Value find(std::string_view key) const;  // an AnyValue, or absent
  std::string text(std::string_view key) const;  // empty where there is none
  std::optional<std::int64_t> integer(std::string_view key) const { return any_int(find(key)); }

  struct One {
    std::string key;
    json::Value value;  // an AnyValue
    json::Value whole;  // with its key, as it is in the list
  };
  const std::vector<One>& all() const { return all_; }

 private:
  std::vector<One> all_;
};

}  // namespace muniment::cli
