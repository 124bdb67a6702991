// Defines the compiled form of schemas: rules in one array that refer to each other by index, so that validation
// allocates nothing until an error occurs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muniment {

using RuleIndex = std::uint32_t;
inline constexpr RuleIndex no_rule = UINT32_MAX;

// Bits of `SchemaRule::types`.
enum SchemaType : std::uint8_t {
  type_null = 1,
  type_boolean = 2,
  type_integer = 4,
  type_number = 8,  // includes integers
  type_string = 16,
  type_array = 32,
  type_object = 64,
  type_any = 127,
};

enum class SchemaFormat : std::uint8_t {
  none,
  run_id,
  run_id_or_log,
  step_id,
  uuid,
  date_time,
  sha256,
  pointer,
};

struct SchemaProperty {
  std::string name;
  RuleIndex rule = no_rule;        // no_rule: required, but its value is not restricted
  std::uint64_t required_bit = 0;  // 0: optional
};

struct SchemaRule {
  std::uint8_t types = type_any;
  SchemaFormat format = SchemaFormat::none;
  bool closed = false;             // additionalProperties: false
  RuleIndex additional = no_rule;  // additionalProperties: {schema}
  RuleIndex items = no_rule;
  std::uint64_t required = 0;              // bits of the required properties
  std::vector<SchemaProperty> properties;  // sorted by name
  std::vector<RuleIndex> one_of;
  std::vector<std::string> allowed;  // enum or const: canonical JSON texts
  std::size_t length_min = 0;
  std::size_t length_max = SIZE_MAX;
  std::size_t count_min = 0;  // of items or members
  std::size_t count_max = SIZE_MAX;
  std::optional<double> minimum;
  std::optional<double> maximum;
};

struct SchemaRules {
  std::vector<SchemaRule> rules;
  std::map<std::string, RuleIndex, std::less<>> roots;  // by path
};

}  // namespace muniment
