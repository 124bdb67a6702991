#include "mcp/offer/tool_arguments.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>

namespace muniment::mcp {
namespace {

constexpr double exact_max = 9'007'199'254'740'992;  // 2^53: every smaller integer is a double

bool allows(const json::Value& schema, std::string_view type) {
  const json::Value allowed = schema["type"];
  if (allowed.is(json::Kind::string)) return allowed.string_or("") == type;
  for (const json::Value one : allowed) {
    if (one.string_or("") == type) return true;
  }
  return false;
}

bool fits(const json::Value& schema, const json::Value& value) {
  switch (value.kind()) {
    case json::Kind::null: return allows(schema, "null");
    case json::Kind::boolean: return allows(schema, "boolean");
    case json::Kind::string: return allows(schema, "string");
    case json::Kind::array: return allows(schema, "array");
    case json::Kind::object: return allows(schema, "object");
    case json::Kind::number: return allows(schema, "number") || (allows(schema, "integer") && value.as_int());
  }
  return false;
}

// Returns the name of the only required member of the objects of this schema if it is a text; otherwise empty.
std::string only_text(const json::Value& schema) {
  if (!allows(schema, "object") || schema["required"].size() != 1) return {};
  std::string name = (*schema["required"].begin()).string_or("");
  return allows(schema["properties"][name], "string") ? name : std::string();
}

bool is_required(const json::Value& schema, std::string_view name) {
  for (const json::Value required : schema["required"]) {
    if (required.string_or("") == name) return true;
  }
  return false;
}

class Typed {
 public:
  explicit Typed(json::Writer& out) : out_(out) {}

  void write(const json::Value& schema, const json::Value& value) {
    if (schema["type"] && fits(schema, value)) return write_fitting(schema, value);
    const bool read =
        schema["type"] && (write_text(schema, value) || write_whole(schema, value) || write_item(schema, value));
    if (!read) out_.raw(value.source());
  }

 private:
  void write_fitting(const json::Value& schema, const json::Value& value) {
    if (value.is(json::Kind::object)) {
      write_members(schema, value);
    } else if (value.is(json::Kind::array)) {
      out_.begin_array();
      for (const json::Value item : value) write_one(schema["items"], item);
      out_.end_array();
    } else {
      out_.raw(value.source());
    }
  }

  void write_members(const json::Value& schema, const json::Value& object) {
    out_.begin_object();
    for (const json::Value member : object) {
      const std::string key = member.key();
      json::Value rule = schema["properties"][key];
      if (!rule) rule = schema["additionalProperties"];
      if (rule["type"] && member.is(json::Kind::null) && !fits(rule, member) && !is_required(schema, key)) continue;
      out_.key(key);
      if (!write_only_text(rule, member)) write(rule, member);
    }
    out_.end_object();
  }

  // Writes an item of an array.
  void write_one(const json::Value& schema, const json::Value& value) {
    const std::string name = value.is(json::Kind::string) ? only_text(schema) : std::string();
    if (name.empty()) return write(schema, value);
    if (const auto read = json_in(value); read.root && fits(schema, read.root)) return write(schema, read.root);
    out_.begin_object().raw_member(name, value.source()).end_object();
  }

  struct Read {
    std::unique_ptr<std::string> text{};
    std::unique_ptr<json::Document> document{};
    json::Value root{};
  };

  // Returns the value whose JSON is in a text; absent if the text is no JSON.
  static Read json_in(const json::Value& value) {
    Read read;
    if (!value.is(json::Kind::string)) return read;
    read.text = std::make_unique<std::string>(value.string_or(""));
    auto document = json::parse(std::string_view(*read.text));
    if (!document) return read;
    read.document = std::make_unique<json::Document>(*std::move(document));
    read.root = read.document->root();
    return read;
  }

  bool write_text(const json::Value& schema, const json::Value& value) {
    const Read read = json_in(value);
    if (!read.root || read.root.is(json::Kind::string) || read.root.is(json::Kind::null)) return false;
    if (fits(schema, read.root)) {
      write_fitting(schema, read.root);
      return true;
    }
    return write_whole(schema, read.root);
  }

  // Writes 3.0 as 3.
  bool write_whole(const json::Value& schema, const json::Value& value) {
    const auto number = value.is(json::Kind::number) ? value.as_double() : std::nullopt;
    if (!number || !allows(schema, "integer") || std::floor(*number) != *number || std::abs(*number) > exact_max)
      return false;
    out_.number(static_cast<std::int64_t>(*number));
    return true;
  }

  bool write_item(const json::Value& schema, const json::Value& value) {
    if (!allows(schema, "array") || value.is(json::Kind::null)) return false;
    const json::Value items = schema["items"];
    const bool meant = fits(items, value) || (value.is(json::Kind::string) && !only_text(items).empty());
    if (!meant) {
      const Read read = json_in(value);
      if (!read.root || !fits(items, read.root)) return false;
    }
    out_.begin_array();
    write_one(items, value);
    out_.end_array();
    return true;
  }

  // Writes a text as the object that has no other required member: "coder" as {"name": "coder"}.
  bool write_only_text(const json::Value& schema, const json::Value& value) {
    const std::string name = value.is(json::Kind::string) ? only_text(schema) : std::string();
    if (name.empty() || fits(schema, value) || json_in(value).root) return false;
    out_.begin_object().raw_member(name, value.source()).end_object();
    return true;
  }

  json::Writer& out_;
};

}  // namespace

std::string typed_arguments(const json::Value& schema, const json::Value& arguments) {
  if (!arguments || arguments.is(json::Kind::null)) return "{}";
  json::Writer out;
  Typed(out).write(schema, arguments);
  return std::move(out).text();
}

}  // namespace muniment::mcp
