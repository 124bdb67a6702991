// Validates a value against its rules. A successful validation allocates nothing; the message is built only after a
// failure.
#include "base/json/schema.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/json/schema_rules.hpp"
#include "base/text.hpp"

namespace muniment {
namespace {

using json::Kind;
using json::Value;

constexpr std::size_t shown_bytes_max = 40;
constexpr std::size_t listed_names_max = 12;

// Location within the value: the path to the root, on the stack.
struct Place {
  const Place* parent = nullptr;
  const Value* member = nullptr;  // nullptr: an item
  std::size_t index = 0;
};

std::string path_of(const Place* place, std::string_view at) {
  if (place == nullptr || place->parent == nullptr) return std::string(at);
  std::string path = path_of(place->parent, at);
  if (place->member == nullptr) return path + fmt::format("[{}]", place->index);
  if (!path.empty()) path += '.';
  return path + place->member->key();
}

std::uint8_t types_of(const Value& value) {
  switch (value.kind()) {
    case Kind::null: return type_null;
    case Kind::boolean: return type_boolean;
    case Kind::number: return value.as_int() ? type_integer : type_number;
    case Kind::string: return type_string;
    case Kind::array: return type_array;
    case Kind::object: return type_object;
  }
  return 0;
}

std::string names_of(std::uint8_t types) {
  if ((types & type_number) != 0) types &= static_cast<std::uint8_t>(~type_integer);
  static constexpr std::pair<std::uint8_t, std::string_view> names[] = {
      {type_object, "object"}, {type_array, "array"},     {type_string, "string"}, {type_integer, "integer"},
      {type_number, "number"}, {type_boolean, "boolean"}, {type_null, "null"}};
  std::string text;
  for (const auto& [bit, name] : names) {
    if ((types & bit) == 0) continue;
    if (!text.empty()) text += " or ";
    text += name;
  }
  return text;
}

std::string shown(const Value& value) {
  switch (value.kind()) {
    case Kind::object: return "object";
    case Kind::array: return "array";
    case Kind::null: return "null";
    case Kind::boolean: return fmt::format("boolean {}", value.source());
    case Kind::number: return fmt::format("number {}", value.source());
    case Kind::string: return fmt::format("string {}", json::quote(preview(*value.as_string(), shown_bytes_max)));
  }
  return {};
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string_view near = nearest(word, candidates);
  return near.empty() ? std::string() : fmt::format(" Did you mean {}?", json::quote(near));
}

class Validation {
 public:
  Validation(const SchemaRules& rules, std::string_view at) : rules_(rules), at_(at) {}

  bool check(RuleIndex index, const Value& value, const Place& place) {
    const SchemaRule& rule = rules_.rules[index];
    if ((rule.types & types_of(value)) == 0) {
      return fail(place, [&] { return fmt::format("expected {}, got {}", names_of(rule.types), shown(value)); });
    }
    if (!rule.allowed.empty() && !check_allowed(rule, value, place)) return false;
    if (!rule.one_of.empty() && !check_one_of(rule, value, place)) return false;
    switch (value.kind()) {
      case Kind::object: return check_object(rule, value, place);
      case Kind::array: return check_array(rule, value, place);
      case Kind::string: return check_string(rule, value, place);
      case Kind::number: return check_number(rule, value, place);
      case Kind::null:
      case Kind::boolean: return true;
    }
    return true;
  }

  Error error() && { return std::move(problem_); }

 private:
  // Calls `message` only if the text is needed: not within a oneOf that is still testing alternatives.
  template <typename Message>
  bool fail(const Place& place, Message&& message) {
    failed_on_allowed_ = false;
    if (quiet_) return false;
    depth_of_problem_ = 0;
    for (const Place* p = &place; p != nullptr; p = p->parent) ++depth_of_problem_;
    const std::string path = path_of(&place, at_);
    problem_ = Error(Errc::invalid_argument, path.empty() ? message() : fmt::format("{}: {}", path, message()));
    return false;
  }

  bool check_allowed(const SchemaRule& rule, const Value& value, const Place& place) {
    const auto contains = [&](std::string_view text) {
      return std::find(rule.allowed.begin(), rule.allowed.end(), text) != rule.allowed.end();
    };
    // A string without escapes is its own canonical text.
    if (value.as_plain_string() ? contains(value.source()) : contains(json::canonical(value))) {
      return true;
    }
    fail(place, [&] {
      const std::string_view one_of = rule.allowed.size() > 1 ? "one of " : "";
      return fmt::format("expected {}{}, got {}.{}", one_of, joined(rule.allowed, ", "), shown(value),
                         nearest_allowed(rule, value));
    });
    failed_on_allowed_ = true;
    return false;
  }

  static std::string nearest_allowed(const SchemaRule& rule, const Value& value) {
    const auto word = value.as_string();
    if (!word || rule.allowed.size() < 2) return {};
    std::vector<std::string> words;
    for (std::string_view text : rule.allowed) {
      if (text.starts_with('"')) words.emplace_back(text.substr(1, text.size() - 2));
    }
    return did_you_mean(*word, words);
  }

  bool check_one_of(const SchemaRule& rule, const Value& value, const Place& place) {
    const bool was_quiet = std::exchange(quiet_, true);
    const auto fits = std::count_if(rule.one_of.begin(), rule.one_of.end(),
                                    [&](RuleIndex index) { return check(index, value, place); });
    quiet_ = was_quiet;
    if (fits == 1) return true;
    if (fits > 1) {
      return fail(place, [&] { return fmt::format("matches {} forms, but must match exactly one", fits); });
    }
    return quiet_ ? fail(place, [] { return std::string(); }) : explain_one_of(rule, value, place);
  }

  // Reports the error of the most likely alternative: of those that no constant excludes, the one whose check got
  // farthest.
  bool explain_one_of(const SchemaRule& rule, const Value& value, const Place& place) {
    Error best(Errc::invalid_argument, "");
    std::size_t best_depth = 0;
    bool best_on_allowed = true;
    for (RuleIndex index : rule.one_of) {
      check(index, value, place);
      const bool better = best.message.empty() || (best_on_allowed && !failed_on_allowed_) ||
                          (best_on_allowed == failed_on_allowed_ && depth_of_problem_ > best_depth);
      if (!better) continue;
      best = problem_;
      best_depth = depth_of_problem_;
      best_on_allowed = failed_on_allowed_;
    }
    problem_ = std::move(best);
    depth_of_problem_ = best_depth;
    failed_on_allowed_ = best_on_allowed;
    return false;
  }

  bool check_object(const SchemaRule& rule, const Value& value, const Place& place) {
    std::uint64_t missing = rule.required;
    std::size_t count = 0;
    for (Value member : value) {
      ++count;
      const auto plain = member.plain_key();
      const bool fine = plain ? check_member(rule, *plain, member, place, missing)
                              : check_member(rule, member.key(), member, place, missing);
      if (!fine) return false;
    }
    if (missing != 0) return fail_missing(rule, value, place, missing);
    return check_count(rule, count, "members", place);
  }

  bool check_member(const SchemaRule& rule, std::string_view key, const Value& member, const Place& place,
                    std::uint64_t& missing) {
    const auto property =
        std::lower_bound(rule.properties.begin(), rule.properties.end(), key,
                         [](const SchemaProperty& known, std::string_view name) { return known.name < name; });
    const Place inner{&place, &member, 0};
    if (property != rule.properties.end() && property->name == key) {
      missing &= ~property->required_bit;
      return property->rule == no_rule || check(property->rule, member, inner);
    }
    if (rule.additional != no_rule) return check(rule.additional, member, inner);
    if (!rule.closed || key.starts_with("x_")) return true;
    return fail(place, [&] { return unknown_field(rule, key); });
  }

  static std::string unknown_field(const SchemaRule& rule, std::string_view key) {
    std::vector<std::string> names;
    for (const SchemaProperty& property : rule.properties) names.push_back(property.name);
    std::string text = fmt::format("unknown field {}.", json::quote(preview(key, shown_bytes_max)));
    if (const std::string near = did_you_mean(key, names); !near.empty()) return text + near;
    const bool cut = names.size() > listed_names_max;
    if (cut) names.resize(listed_names_max);
    return text + fmt::format(" Known are {}{}.", joined(names, ", "), cut ? ", …" : "");
  }

  bool fail_missing(const SchemaRule& rule, const Value& value, const Place& place, std::uint64_t missing) {
    const bool constant_missing =
        std::any_of(rule.properties.begin(), rule.properties.end(), [&](const SchemaProperty& property) {
          return (property.required_bit & missing) != 0 && property.rule != no_rule &&
                 rules_.rules[property.rule].allowed.size() == 1;
        });
    fail(place, [&] {
      std::vector<std::string> names;
      for (const SchemaProperty& property : rule.properties) {
        if ((property.required_bit & missing) != 0) names.push_back(json::quote(property.name));
      }
      return fmt::format("missing field{} {}{}", names.size() > 1 ? "s" : "", joined(names, ", "),
                         value.size() == 0 ? " (it is empty)" : "");
    });
    failed_on_allowed_ = constant_missing;
    return false;
  }

  bool check_array(const SchemaRule& rule, const Value& value, const Place& place) {
    std::size_t count = 0;
    for (Value item : value) {
      if (rule.items != no_rule && !check(rule.items, item, Place{&place, nullptr, count})) {
        return false;
      }
      ++count;
    }
    if (check_count(rule, count, "items", place)) return true;
    if (count > rule.count_max && !quiet_) {
      problem_.code = Errc::too_large;
      problem_.limit = static_cast<std::int64_t>(rule.count_max);
      problem_.message += ". Send fewer at a time.";
    }
    return false;
  }

  bool check_count(const SchemaRule& rule, std::size_t count, std::string_view of, const Place& place) {
    if (count > rule.count_max) {
      return fail(place, [&] { return fmt::format("{} {}, limit {}", grouped(count), of, grouped(rule.count_max)); });
    }
    if (count >= rule.count_min) return true;
    return fail(
        place, [&] { return fmt::format("{} {}, at least {} required", grouped(count), of, grouped(rule.count_min)); });
  }

  bool check_string(const SchemaRule& rule, const Value& value, const Place& place) {
    const bool any_length = rule.length_min == 0 && rule.length_max == SIZE_MAX;
    if (any_length && rule.format == SchemaFormat::none) return true;
    if (const auto plain = value.as_plain_string()) return check_text(rule, *plain, place);
    return check_text(rule, *value.as_string(), place);
  }

  bool check_text(const SchemaRule& rule, std::string_view text, const Place& place) {
    if (text.size() > rule.length_max) {
      return fail(place,
                  [&] { return fmt::format("{} bytes, limit {}", grouped(text.size()), grouped(rule.length_max)); });
    }
    if (text.size() < rule.length_min) {
      return fail(place, [&] {
        if (text.empty()) return std::string("must not be empty");
        return fmt::format("{} bytes, at least {} required", text.size(), rule.length_min);
      });
    }
    return rule.format == SchemaFormat::none || check_format(rule.format, text, place);
  }

  bool check_format(SchemaFormat format, std::string_view text, const Place& place) {
    const auto expect = [&](bool fits, std::string_view what) {
      return fits || fail(place, [&] {
               return fmt::format("expected {}, got {}", what, json::quote(preview(text, shown_bytes_max)));
             });
    };
    switch (format) {
      case SchemaFormat::none: return true;
      case SchemaFormat::run_id: return check_id(check_run_id(text), place);
      case SchemaFormat::run_id_or_log: return text == log_run_id || check_id(check_run_id(text), place);
      case SchemaFormat::step_id: return check_id(check_step_id(text), place);
      case SchemaFormat::uuid: return expect(parse_uuid(text).has_value(), "a UUID");
      case SchemaFormat::date_time:
        return expect(parse_time(text).has_value(), "an RFC 3339 time such as \"2026-11-21T14:02:11Z\"");
      case SchemaFormat::sha256:
        return expect(hash_from_hex(text).has_value(), "a SHA-256 of 64 lower-case hex digits");
      case SchemaFormat::pointer: return expect(!text.empty(), "a pointer such as \"artifact://…\"");
    }
    return true;
  }

  bool check_id(const Status& status, const Place& place) {
    return status.ok() || fail(place, [&] { return status.error().message; });
  }

  bool check_number(const SchemaRule& rule, const Value& value, const Place& place) {
    if (!rule.minimum && !rule.maximum) return true;
    const double number = value.as_double().value_or(0);
    if (rule.minimum && number < *rule.minimum) {
      return fail(place, [&] { return fmt::format("{} is below {}, the minimum", value.source(), *rule.minimum); });
    }
    if (!rule.maximum || number <= *rule.maximum) return true;
    return fail(place, [&] { return fmt::format("{} is above {}, the limit", value.source(), *rule.maximum); });
  }

  const SchemaRules& rules_;
  std::string_view at_;
  bool quiet_ = false;
  Error problem_{Errc::invalid_argument, ""};
  std::size_t depth_of_problem_ = 0;
  bool failed_on_allowed_ = false;  // a constant excludes this alternative
};

}  // namespace

Status Schema::validate(const json::Value& value, std::string_view at) const {
  Validation validation(*rules_, at);
  if (validation.check(root_, value, Place{})) return success();
  return std::move(validation).error();
}

}  // namespace muniment
