// Compiles schema texts to rules (schema_rules.hpp), once at start.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json/schema.hpp"
#include "base/json/schema_rules.hpp"

namespace muniment {
namespace {

constexpr std::array<std::string_view, 8> annotations = {"$schema",     "$id",     "$defs",    "title",
                                                         "description", "default", "examples", "deprecated"};

std::optional<std::uint8_t> type_of(std::string_view name) {
  if (name == "null") return type_null;
  if (name == "boolean") return type_boolean;
  if (name == "integer") return type_integer;
  if (name == "number") return type_number | type_integer;
  if (name == "string") return type_string;
  if (name == "array") return type_array;
  if (name == "object") return type_object;
  return std::nullopt;
}

std::optional<SchemaFormat> format_of(std::string_view name) {
  if (name == "run-id") return SchemaFormat::run_id;
  if (name == "run-id-or-log") return SchemaFormat::run_id_or_log;
  if (name == "step-id") return SchemaFormat::step_id;
  if (name == "uuid") return SchemaFormat::uuid;
  if (name == "date-time") return SchemaFormat::date_time;
  if (name == "sha256") return SchemaFormat::sha256;
  if (name == "pointer") return SchemaFormat::pointer;
  return std::nullopt;
}

Error wrong(std::string message) { return {Errc::system_error, std::move(message)}; }

class Compiler {
 public:
  explicit Compiler(SchemaRules& out) : out_(out) {}

  Status add_file(const SchemaText& file) {
    auto parsed = json::parse(file.text);
    if (!parsed) return wrong(std::move(parsed).error().message);
    documents_.insert_or_assign(std::string(file.path), std::make_unique<json::Document>(*std::move(parsed)));
    return success();
  }

  Status compile_file(std::string_view path) {
    const json::Value root = documents_.find(path)->second->root();
    file_ = path;
    if (!root["params"]) return compile_root(std::string(path), root);
    for (const char* part : {"params", "result"}) {
      if (root[part]) RETURN_IF_ERROR(compile_root(fmt::format("{}#{}", path, part), root[part]));
    }
    return success();
  }

 private:
  Status compile_root(std::string name, const json::Value& schema) {
    ASSIGN_OR_RETURN(const RuleIndex index, compile(schema));
    out_.roots.emplace(std::move(name), index);
    return success();
  }

  Result<RuleIndex> compile(const json::Value& schema) {
    if (!schema.is(json::Kind::object)) return wrong("a schema must be an object");
    if (const auto ref = schema["$ref"]) return compile_ref(ref.string_or(""));
    const auto index = static_cast<RuleIndex>(out_.rules.size());
    out_.rules.emplace_back();
    RETURN_IF_ERROR(fill(index, schema));
    return index;
  }

  // Compiles a definition once. Its index is assigned before its content, because it may refer to itself.
  Result<RuleIndex> compile_ref(std::string_view ref) {
    const std::size_t hash = ref.find('#');
    const std::string_view target = ref.substr(0, hash);
    constexpr std::string_view definitions = "#/$defs/";
    if (hash == std::string_view::npos || !ref.substr(hash).starts_with(definitions) ||
        (!target.empty() && !target.ends_with(".json"))) {
      return wrong(fmt::format("$ref \"{}\" is neither \"#/$defs/x\" nor \"file.json#/$defs/x\"", ref));
    }
    const std::string file(target.empty() ? file_ : target.substr(0, target.size() - 5));
    const std::string_view name = ref.substr(hash + definitions.size());
    const std::string id = fmt::format("{}#{}", file, name);
    if (const auto known = definitions_.find(id); known != definitions_.end()) return known->second;
    const auto document = documents_.find(file);
    if (document == documents_.end()) return wrong(fmt::format("$ref \"{}\": no such file", ref));
    const json::Value definition = document->second->root()["$defs"][name];
    if (!definition) return wrong(fmt::format("$ref \"{}\": no such definition", ref));
    // A definition that is only a reference has no rule of its own.
    if (definition["$ref"]) return within_file(file, [&] { return compile(definition); });
    const auto index = static_cast<RuleIndex>(out_.rules.size());
    out_.rules.emplace_back();
    definitions_.emplace(id, index);
    return within_file(file, [&]() -> Result<RuleIndex> {
      RETURN_IF_ERROR(fill(index, definition));
      return index;
    });
  }

  template <typename Function>
  Result<RuleIndex> within_file(const std::string& file, Function&& function) {
    if (++depth_ > 64) return wrong("$ref is circular");
    const std::string before = std::exchange(file_, file);
    auto result = function();
    file_ = before;
    --depth_;
    return result;
  }

  // Compiling a part may move the array of rules, so that a rule is filled locally and stored last.
  Status fill(RuleIndex index, const json::Value& schema) {
    if (!schema.is(json::Kind::object)) return wrong("a schema must be an object");
    SchemaRule rule;
    for (json::Value keyword : schema) {
      const std::string name = keyword.key();
      auto done = fill_keyword(rule, name, keyword);
      if (!done) return std::move(done).error().within(name);
    }
    if (const auto required = schema["required"]) RETURN_IF_ERROR(fill_required(rule, required));
    std::sort(rule.properties.begin(), rule.properties.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    out_.rules[index] = std::move(rule);
    return success();
  }

  Status fill_keyword(SchemaRule& rule, std::string_view name, const json::Value& value) {
    if (name == "type") return fill_types(rule, value);
    if (name == "properties") return fill_properties(rule, value);
    if (name == "required") return success();  // processed after the properties, regardless of their order
    if (name == "additionalProperties") return fill_additional(rule, value);
    if (name == "items") return fill_part(rule.items, value);
    if (name == "oneOf") return fill_one_of(rule, value);
    if (name == "enum") return fill_enum(rule, value);
    if (name == "const") return rule.allowed.push_back(json::canonical(value)), success();
    if (name == "format") return fill_format(rule, value);
    if (name == "minLength") return fill_count(rule.length_min, value);
    if (name == "maxLength") return fill_count(rule.length_max, value);
    if (name == "minItems" || name == "minProperties") return fill_count(rule.count_min, value);
    if (name == "maxItems" || name == "maxProperties") return fill_count(rule.count_max, value);
    if (name == "minimum") return fill_bound(rule.minimum, value);
    if (name == "maximum") return fill_bound(rule.maximum, value);
    const bool annotation =
        name.starts_with("x-") || std::find(annotations.begin(), annotations.end(), name) != annotations.end();
    return annotation ? success() : wrong("unknown keyword");
  }

  Status fill_types(SchemaRule& rule, const json::Value& value) {
    rule.types = 0;
    const auto add = [&rule](const json::Value& name) -> Status {
      const auto type = type_of(name.string_or(""));
      if (!type) return wrong(fmt::format("unknown type {}", name.source()));
      rule.types |= *type;
      return success();
    };
    if (!value.is(json::Kind::array)) return add(value);
    for (json::Value name : value) RETURN_IF_ERROR(add(name));
    return success();
  }

  Status fill_properties(SchemaRule& rule, const json::Value& value) {
    for (json::Value property : value) {
      auto compiled = compile(property);
      if (!compiled) return std::move(compiled).error().within(property.key());
      rule.properties.push_back({property.key(), *compiled, 0});
    }
    return success();
  }

  Status fill_required(SchemaRule& rule, const json::Value& value) {
    std::uint64_t bit = 1;
    for (json::Value item : value) {
      if (bit == 0) return wrong("required: more than 64 names");
      const std::string name = item.string_or("");
      auto property = std::find_if(rule.properties.begin(), rule.properties.end(),
                                   [&](const auto& known) { return known.name == name; });
      if (property == rule.properties.end()) {
        property = rule.properties.insert(property, {name, no_rule, 0});
      }
      property->required_bit = bit;
      rule.required |= bit;
      bit <<= 1;
    }
    return success();
  }

  Status fill_additional(SchemaRule& rule, const json::Value& value) {
    if (value.is(json::Kind::object)) return fill_part(rule.additional, value);
    const auto allowed = value.as_bool();
    if (!allowed) return wrong("must be a boolean or a schema");
    rule.closed = !*allowed;
    return success();
  }

  Status fill_part(RuleIndex& part, const json::Value& value) {
    ASSIGN_OR_RETURN(part, compile(value));
    return success();
  }

  Status fill_one_of(SchemaRule& rule, const json::Value& value) {
    for (json::Value alternative : value) {
      ASSIGN_OR_RETURN(const RuleIndex index, compile(alternative));
      rule.one_of.push_back(index);
    }
    return rule.one_of.empty() ? Status(wrong("must be a list of schemas")) : success();
  }

  Status fill_enum(SchemaRule& rule, const json::Value& value) {
    for (json::Value allowed : value) rule.allowed.push_back(json::canonical(allowed));
    return rule.allowed.empty() ? Status(wrong("must be a list of values")) : success();
  }

  Status fill_format(SchemaRule& rule, const json::Value& value) {
    const auto format = format_of(value.string_or(""));
    if (!format) return wrong(fmt::format("unknown format {}", value.source()));
    rule.format = *format;
    return success();
  }

  Status fill_count(std::size_t& count, const json::Value& value) {
    const auto number = value.as_int();
    if (!number || *number < 0) return wrong("must be a count");
    count = static_cast<std::size_t>(*number);
    return success();
  }

  Status fill_bound(std::optional<double>& bound, const json::Value& value) {
    bound = value.as_double();
    return bound ? success() : Status(wrong("must be a number"));
  }

  SchemaRules& out_;
  std::map<std::string, std::unique_ptr<json::Document>, std::less<>> documents_;
  std::map<std::string, RuleIndex> definitions_;  // "common#part"
  std::string file_;                              // the file to which "#/$defs/x" refers
  int depth_ = 0;
};

}  // namespace

SchemaSet::SchemaSet(std::unique_ptr<SchemaRules> rules) : rules_(std::move(rules)) {}
SchemaSet::SchemaSet(SchemaSet&&) noexcept = default;
SchemaSet& SchemaSet::operator=(SchemaSet&&) noexcept = default;
SchemaSet::~SchemaSet() = default;

Result<SchemaSet> SchemaSet::load(std::span<const SchemaText> texts) {
  auto rules = std::make_unique<SchemaRules>();
  Compiler compiler(*rules);
  for (const SchemaText& text : texts) {
    auto added = compiler.add_file(text);
    if (!added) return std::move(added).error().within(fmt::format("schema/{}.json", text.path));
  }
  for (const SchemaText& text : texts) {
    auto compiled = compiler.compile_file(text.path);
    if (!compiled) {
      return std::move(compiled).error().within(fmt::format("schema/{}.json", text.path));
    }
  }
  return SchemaSet(std::move(rules));
}

std::optional<Schema> SchemaSet::find(std::string_view path) const {
  const auto root = rules_->roots.find(path);
  if (root == rules_->roots.end()) return std::nullopt;
  return Schema(rules_.get(), root->second);
}

std::vector<std::string_view> SchemaSet::paths(std::string_view prefix) const {
  std::vector<std::string_view> found;
  for (const auto& [path, rule] : rules_->roots) {
    if (std::string_view(path).starts_with(prefix)) found.push_back(path);
  }
  return found;
}

}  // namespace muniment
