// A JSON value that can be changed: what a run's `working` is made of. Numbers keep their token, so
// that the canonical text (docs/format.md) is the one that was hashed.
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
  std::string text;  // of a string (unescaped), a number or a boolean
  std::vector<Changeable> items;
  std::map<std::string, Changeable> members;  // in the order of their bytes

  static Changeable object();
  static Changeable from(const json::Value& value);

  std::size_t levels() const;          // 0 for a scalar, 1 for {}
  void write(std::string& out) const;  // its canonical text
  std::string canonical() const;
};

void write_quoted(std::string_view text, std::string& out);

// The value of two number tokens, so that 1.50 and 15e-1 are equal.
bool same_number(std::string_view a, std::string_view b);

// Equal as JSON values, numbers by their decimal value: what jsonb makes of a text.
bool same_value(const json::Value& a, const json::Value& b);

// Does a jsonb column hold the value of this text? NULL is nullopt.
bool same_jsonb(const std::optional<std::string>& wanted, const std::optional<std::string>& held);

}  // namespace muniment::verify
