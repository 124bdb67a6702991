// The contract of schema/, compiled into the binary, and what holds values against it.
//
// A file is one JSON Schema, except that a file with a top-level "params" holds two: it is found
// as "rpc/run.start#params" and "rpc/run.start#result". Understood are type, properties, required,
// additionalProperties, minProperties, maxProperties, items, minItems, maxItems, enum, const,
// minLength, maxLength (bytes of UTF-8), minimum, maximum, oneOf, $ref ("#/$defs/x" and
// "common.json#/$defs/x") and, as format, run-id, run-id-or-log, step-id, uuid, date-time, sha256
// and pointer. Annotations (description, x-…) are passed over; any other keyword fails the load,
// so that no schema promises what is not checked.
//
// Where additionalProperties is false, members starting with "x_" are allowed all the same: they
// are the client's own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment {

struct SchemaText {
  std::string_view path;  // "rpc/run.start", "event/run.started", "common", "state"
  std::string_view text;
};

// All files of schema/, sorted by their path (written by scripts/embed_texts.py).
std::span<const SchemaText> embedded_schema_texts();

struct SchemaRules;  // schema_rules.hpp

// One schema of a set; cheap to copy, and valid as long as its set.
class Schema {
 public:
  // Errors: invalid_argument, naming the place ("events[3].body.usage.input_tokens: expected
  // integer, got string "12""); too_large with its limit for a list of too many items. `at` is the
  // place of `value` itself, put in front.
  Status validate(const json::Value& value, std::string_view at = {}) const;

 private:
  friend class SchemaSet;
  Schema(const SchemaRules* rules, std::uint32_t root) : rules_(rules), root_(root) {}
  const SchemaRules* rules_;
  std::uint32_t root_;
};

// Schemas that may refer to each other. Reading is safe from any thread.
class SchemaSet {
 public:
  // Errors: system_error, naming the file and the keyword: the program was built wrongly.
  static Result<SchemaSet> load(std::span<const SchemaText> texts);
  static Result<SchemaSet> embedded() { return load(embedded_schema_texts()); }

  SchemaSet(SchemaSet&&) noexcept;
  SchemaSet& operator=(SchemaSet&&) noexcept;
  ~SchemaSet();

  std::optional<Schema> find(std::string_view path) const;
  // The paths that start with `prefix` ("event/"), sorted.
  std::vector<std::string_view> paths(std::string_view prefix) const;

 private:
  explicit SchemaSet(std::unique_ptr<SchemaRules> rules);
  std::unique_ptr<SchemaRules> rules_;
};

}  // namespace muniment
