// A mutable JSON value, for a run's `working`. Numbers keep their token, so that the canonical text (docs/format.md)
// matches the hashed one.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::verify {

struct Changeable {
  json::Kind kind = json::Kind::null;
  std::string text;  // content of a string (unescaped), a number or a boolean
  std::vector<Changeable> items;
  std::map<std::string, Changeable> members;  // ordered by their bytes

  static Changeable object();
  static Changeable from(const json::Value& value);

  std::size_t levels() const;          // 0 for a scalar, 1 for {}
  void write(std::string& out) const;  // writes the canonical text
  std::string canonical() const;
};

void write_quoted(std::string_view text, std::string& out);

// Compares the values of two number tokens: 1.50 and 15e-1 are equal.
bool same_number(std::string_view a, std::string_view b);

// Compares JSON values, numbers by their decimal value, as jsonb does.
bool same_value(const json::Value& a, const json::Value& b);

// Returns whether a jsonb column holds the value of this text. nullopt is NULL.
bool same_jsonb(const std::optional<std::string>& wanted, const std::optional<std::string>& held);

}  // namespace muniment::verify
