// Searches the words and values of statements in calls and results.
#include "evidence/run_judge/actions/match.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/text.hpp"
#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {

using Type = Value::Type;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool succeeded(const Action& action) {
  return action.receipt == Receipt::done || action.receipt == Receipt::pending || action.receipt == Receipt::partly;
}

std::string word_in_pool(std::string_view word) { return " " + std::string(word) + " "; }

// Returns whether the verb, or its participle, is a word of the text.
bool names_verb(std::string_view pool, const std::string& verb) {
  if (verb.size() < 3) return false;
  const std::string stem = verb.ends_with("e") ? verb.substr(0, verb.size() - 1) : verb;
  return has(pool, " " + stem);
}

bool shares_thing(const Act& act, const Action& action) {
  bool known = false, strict = false;
  for (const std::string& noun : act.nouns) {
    const int thing = thing_of(noun);
    if (thing == 0) continue;
    known = true;
    if (thing == general_thing) return true;
    static const Pattern request(R"( (?:pr|prs|pull|mr|merge request) )");
    if (thing == request_thing && request.in(action.call.pool)) return true;
    strict = strict || thing == request_thing;
    if (has_words(action, word_in_pool(noun))) return true;
    for (const auto* things : {&action.call.things, &action.call.member_things}) {
      for (const int own : *things) {
        if (own == thing || own == general_thing) return true;
      }
    }
  }
  return !known || (action.call.things.empty() && !strict);
}

bool has_payment(const Action& action) {
  static const Pattern payment(R"(payment|price|amount|total|cost|refund|card|charge|fare|fee)");
  const auto in = [&](const std::vector<Scalar>& scalars) {
    return std::any_of(scalars.begin(), scalars.end(), [](const Scalar& scalar) { return payment.in(scalar.key); });
  };
  return in(action.call.arguments) || in(action.scalars);
}

bool holds(const std::vector<Slot>& slots, const Value& value) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) { return is_same(slot.value, value); });
}

// Returns whether a plain text is in the call or in its result. Most texts are excluded by the hash of a word.
bool has_words(const Action& action, std::string_view text) {
  for (std::size_t at = 1; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t hash = std::hash<std::string_view>()(text.substr(at, end - at));
    if (!std::binary_search(action.words.begin(), action.words.end(), hash)) return false;
    at = end + 1;
  }
  return has(action.call.pool, text) || has(action.pool, text);
}

bool has_value(const Action& action, const Value& value) {
  if (value.type == Type::name || value.type == Type::id || value.type == Type::email) {
    if (has_words(action, value.plain)) return true;
  }
  return holds(action.call.slots, value) || holds(action.slots, value);
}

// Returns whether the call has an id or a date of the sentence.
bool is_about(const Act& act, const Action& action) {
  return !action.call.slots.empty() && std::any_of(act.values.begin(), act.values.end(), [&](const Value& value) {
    return value.type != Type::number &&
           (holds(action.call.slots, value) || (value.type == Type::id && has_value(action, value)));
  });
}

bool is_id(const Value& value) { return value.type == Type::id || value.type == Type::email; }

// A member that says when the record was written is no value of the action.
bool is_clerical(std::string_view key) {
  static const Pattern clerical(
      R"(created|updated|modified|timestamp|issued|expir|processed|generated|logged|request_?id|trace|sent_at|completed)");
  return clerical.in(key);
}

// Ids of the target of a call. An id of the user is one only if there is no other.
std::vector<Value> targets_of(const Action& action) {
  static const Pattern owner(
      R"(^(?:user|customer|account|passenger|payment|agent|tenant|org|owner|caller|card|session|workspace))");
  std::vector<Value> targets, owners;
  const auto add = [&](const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      const bool id_key = slot.key.ends_with("id") || slot.key.ends_with("number") || slot.key.ends_with("code") ||
                          slot.key == "pr" || slot.key == "reference";
      if (!is_id(slot.value) && !(slot.value.type == Type::number && id_key)) continue;
      if (is_clerical(slot.key)) continue;
      (owner.in(slot.key) ? owners : targets).push_back(slot.value);
    }
  };
  add(action.call.slots);
  add(action.slots);
  if (targets.empty()) targets = std::move(owners);
  if (targets.size() > targets_max) targets.resize(targets_max);
  return targets;
}

bool is_same_target(const Action& a, const Action& b) {
  return std::any_of(a.targets.begin(), a.targets.end(),
                     [&](const Value& value) { return holds(b.call.slots, value); });
}

Ruling contradicted(const Action& action, std::string why) {
  return {.verdict = Verdict::contradicted, .seq = action.seq, .why = std::move(why)};
}

bool already(const Action& action) {
  static const Pattern known(R"(already|duplicate|exists|no changes|up[- ]to[- ]date)");
  return known.in(action.pool) || known.in(action.status);
}

// Returns whether the record contains the other one, or is the same.
bool is_inside(const Action& action, int inner, int outer) {
  while (inner != outer && inner >= 0) inner = action.records.parents[static_cast<std::size_t>(inner)];
  return inner == outer;
}

// Returns the scalars that contain a plain text.
std::vector<const Scalar*> scalars_with(const Action& action, std::string_view text) {
  constexpr std::size_t scalars_found_max = 16;
  std::vector<const Scalar*> found;
  if (!has_words(action, text)) return found;
  for (const Scalar& scalar : action.scalars) {
    if (found.size() < scalars_found_max && has(scalar.plain, text)) found.push_back(&scalar);
  }
  return found;
}

// Returns whether a record contains both, one of them as its own member.
bool in_one_record(const Action& action, const std::string& a, const std::string& b) {
  if (action.scalars.empty()) return has(action.pool, a) && has(action.pool, b);
  const std::vector<const Scalar*> ones = scalars_with(action, a);
  if (ones.empty()) return false;
  const std::vector<const Scalar*> others = scalars_with(action, b);
  return std::any_of(ones.begin(), ones.end(), [&](const Scalar* one) {
    return std::any_of(others.begin(), others.end(), [&](const Scalar* other) {
      return is_inside(action, one->record, other->record) || is_inside(action, other->record, one->record);
    });
  });
}

// Returns the form of an id: "a9.9" for "v12.4".
std::string shape_of(std::string_view text) {
  std::string shape;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'z';
    const char kind = digit ? '9' : letter ? 'a' : c;
    if (shape.empty() || shape.back() != kind || !(digit || letter)) shape.push_back(kind);
  }
  return shape;
}

std::string shown(const Value& value) { return preview(value.text, 40); }

}  // namespace muniment::evidence::run_judge
