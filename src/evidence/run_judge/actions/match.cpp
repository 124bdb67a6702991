// Searches the words and values of statements in calls and results.
#include "evidence/run_judge/actions/match.hpp"

#include <algorithm>

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
    if (has(action.call.pool, word_in_pool(noun)) || has(action.pool, word_in_pool(noun))) return true;
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

bool has_value(const Action& action, const Value& value) {
  if (value.type == Type::name || value.type == Type::id || value.type == Type::email) {
    const std::string text = plain(value.text);
    if (has(action.call.pool, text) || has(action.pool, text)) return true;
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
  return targets.empty() ? owners : targets;
}

bool is_same_target(const Action& a, const Action& b) {
  const std::vector<Value> ours = targets_of(a);
  return std::any_of(ours.begin(), ours.end(), [&](const Value& value) { return holds(b.call.slots, value); });
}

Ruling contradicted(const Action& action, std::string why) {
  return {.verdict = Verdict::contradicted, .seq = action.seq, .why = std::move(why)};
}

bool already(const Action& action) {
  static const Pattern known(R"(already|duplicate|exists|no changes|up[- ]to[- ]date)");
  return known.in(action.pool) || known.in(action.status);
}

// Returns the member of the record that names the object: the direct texts of an object.
bool record_has(const Action& action, int record, std::string_view text, bool direct) {
  for (const Scalar& scalar : action.scalars) {
    int at = scalar.record;
    while (!direct && at != record && at >= 0) at = action.records.parents[static_cast<std::size_t>(at)];
    if (at == record && has(plain(scalar.text), text)) return true;
  }
  return false;
}

// Returns whether a record contains both, one of them as its own member.
bool in_one_record(const Action& action, const std::string& a, const std::string& b) {
  if (!has(action.pool, a) || !has(action.pool, b)) return false;
  if (action.scalars.empty()) return true;
  for (int record = 0; record < static_cast<int>(action.records.parents.size()); ++record) {
    if ((record_has(action, record, a, true) && record_has(action, record, b, false)) ||
        (record_has(action, record, b, true) && record_has(action, record, a, false)))
      return true;
  }
  return false;
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
