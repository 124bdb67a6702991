// Reads the values of OTLP/JSON (opentelemetry-proto 1.x): AnyValue, attribute lists, ids, times. 64-bit fields may be
// numbers or text; ids may be hexadecimal or, as in plain protobuf JSON, base64.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::cli {

// Writes an AnyValue as plain JSON. Unknown forms are written unchanged, values nested too deeply as text.
void write_any(json::Writer& out, const json::Value& any);
std::string any_json(const json::Value& any);
// Returns a stringValue, a number or boolean in its original spelling, or the JSON of any other value.
std::string any_text(const json::Value& any);
std::optional<std::int64_t> any_int(const json::Value& any);
// Returns a count that an instrumentation wrote as an integer, as a number with a fraction of zero, or as text.
std::optional<std::int64_t> any_count(const json::Value& any);

// Reads a 64-bit field, a number or its text. Returns nullopt if absent, zero, negative or not a number.
std::optional<std::uint64_t> otlp_nanos(const json::Value& value);
// Returns RFC 3339 with microseconds; empty for nullopt.
std::string otlp_time(std::optional<std::uint64_t> nanos);

// Returns an id of `bytes` bytes as lower-case hexadecimal; empty if it is invalid or zero.
std::string otlp_id(const json::Value& value, std::size_t bytes);

// "startTimeUnixNano" → "start_time_unix_nano": the name of a field in the .proto files.
std::string snake_case(std::string_view name);
// Returns a value with the names that OTLP/JSON gives to the fields of the .proto files.
std::string camel_case_json(const json::Value& value);

// Writes the members of an object except the named ones and nulls into the current object.
void write_members(json::Writer& out, const json::Value& object, std::initializer_list<std::string_view> placed);

// Looks up attributes of a span or an event by name. The first of two with the same name counts.
class OtlpAttributes {
 public:
  OtlpAttributes() = default;
  explicit OtlpAttributes(const json::Value& list);

  json::Value find(std::string_view key) const;  // an AnyValue or absent
  std::string text(std::string_view key) const;  // empty if absent
  std::optional<std::int64_t> integer(std::string_view key) const { return any_int(find(key)); }

  struct One {
    std::string key;
    json::Value value;  // an AnyValue
    json::Value whole;  // the list element, including its key
  };
  const std::vector<One>& all() const { return all_; }

 private:
  std::vector<One> all_;
};

}  // namespace muniment::cli
