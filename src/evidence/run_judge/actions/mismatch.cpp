// Compares the values, names and counts of a statement with those of the calls.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>

#include "base/text.hpp"
#include "evidence/run_judge/actions/match.hpp"
#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {

using Type = Value::Type;

namespace {

bool is_bound_money(const Act& act, const Value& value) {
  static const Pattern bound(
      R"((?:refund(?:ed)?|charged?|credit(?:ed)?|paid|payment|amount|total(?:ing|ling)?|discount|deposit|invoice|to|for|of)\s+(?:(?:a|an|the|you|your|card|of|for|to|is|total|full|amount)\s+){0,4}$)");
  const std::size_t lead = value.begin > 60 ? value.begin - 60 : 0;
  return (act.effects & (pays | updates)) != 0 &&
         bound.in(std::string_view(act.clause).substr(lead, value.begin - lead));
}

bool has_money(const std::vector<Slot>& slots) {
  return std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.value.type == Type::money; });
}

double money_sum(const std::vector<const Action*>& matching) {
  double sum = 0;
  for (const Action* action : matching) {
    if (!succeeded(*action)) continue;
    const std::vector<Slot>& slots = has_money(action->call.slots) ? action->call.slots : action->slots;
    for (const Slot& slot : slots) {
      if (slot.value.type != Type::money) continue;
      sum += slot.value.number;
      break;
    }
  }
  return sum;
}

// Returns the member of a call whose name is the unit of a number: 3 nights, party of 4.
const Slot* counted_slot(const Act& act, const Value& value, const Action& action) {
  struct Unit {
    Pattern word;
    Pattern key;
  };
  static const std::vector<Unit> units = [] {
    std::vector<Unit> made;
    const auto add = [&](const char* word, const char* key) { made.push_back({Pattern(word), Pattern(key)}); };
    add(R"(^\W*nights?\b)", R"(nights?)");
    add(R"(^\W*(?:people|persons?|guests?|diners|adults|covers|of you|pax)\b)",
        R"(party|guests?|people|persons?|covers|adults|pax|diners)");
    add(R"(^\W*passengers?|travell?ers?\b)", R"(passengers?|travell?ers?|pax)");
    add(R"(^\W*(?:checked )?bags?\b)", R"(bags?|baggage)");
    add(R"(^\W*seats\b)", R"(seats?(?:_count)?$|quantity|qty|licen[sc]es)");
    add(R"(^\W*(?:units|items|copies|licen[sc]es)\b)", R"(quantity|qty|units|items|copies|licen[sc]es)");
    add(R"(^\W*rooms\b)", R"(rooms)");
    add(R"(^\W*tickets\b)", R"(tickets|quantity|qty|count)");
    add(R"(^\W*(?:minutes?|mins?)\b)", R"(minutes|duration)");
    add(R"(^\W*replicas?\b)", R"(replicas?)");
    return made;
  }();
  static const Pattern party(R"((?:party|table|group|reservation)\s+(?:of|for)\s+$)");
  const std::string_view after =
      std::string_view(act.clause).substr(std::min(value.begin + value.text.size(), act.clause.size()));
  const std::string_view before = std::string_view(act.clause).substr(0, value.begin);
  for (const Unit& unit : units) {
    const bool people = &unit == &units[1] && party.in(before);
    if (!unit.word.in(after) && !people) continue;
    for (const Slot& slot : action.call.slots) {
      // "one more bag" is no total.
      static const Pattern total(R"(^\W*(?:\w+ ){1,3}in total\b)");
      if (slot.key.find("total") != std::string::npos && !total.in(after)) continue;
      if (slot.value.type == Type::number && unit.key.in(slot.key)) return &slot;
    }
  }
  return nullptr;
}

}  // namespace

namespace {

Ruling other_value(const Action& chosen, const Slot& slot, const Value& value) {
  return contradicted(chosen, fmt::format("the call of {} at seq {} has {} {}, not {}", chosen.call.name, chosen.seq,
                                          slot.key.empty() ? "the value" : slot.key, shown(slot.value), shown(value)));
}

// Returns the member of the call that the clause names before the value: "seat 12C", and the seat of the call is 21C.
const Slot* named_slot(const Value& value, const Act& act, const Action& chosen) {
  const std::string clause = plain(act.clause);
  for (const Slot& slot : chosen.call.slots) {
    const std::size_t last = slot.key.rfind('_') == std::string::npos ? 0 : slot.key.rfind('_') + 1;
    const std::string_view word = last > 0 && slot.key.substr(last) == "id"
                                      ? std::string_view(slot.key).substr(0, last - 1)
                                      : std::string_view(slot.key).substr(last);
    if (slot.value.type != Type::id || word.empty() || slot.value.text.find('@') != std::string::npos) continue;
    static const Pattern bound(R"(^\W*(?:number |code |id )?(?:from \S+ )?(?:to |is |is now |now )?$)");
    const std::size_t at = clause.find(" " + std::string(word) + " ");
    const std::size_t said = clause.find(plain(value.text));
    if (at == std::string::npos || said == std::string::npos || said < at || has(clause, plain(slot.value.text)))
      continue;
    if (bound.in(std::string_view(clause).substr(at + word.size() + 2, said - std::min(said, at + word.size() + 1))))
      return &slot;
  }
  return nullptr;
}

}  // namespace

std::optional<Ruling> Ledger::value_mismatch(const Value& value, const Act& act,
                                             const std::vector<const Action*>& matching, const Action& chosen) const {
  const Action* refused = nullptr;
  for (const Action* action : matching) {
    if (!has_value(*action, value)) continue;
    if (succeeded(*action)) return std::nullopt;
    refused = action;
  }
  const auto other = [&](const std::vector<Slot>& slots) -> const Slot* {
    for (const Slot& slot : slots) {
      if (slot.value.type == value.type && !is_clerical(slot.key)) return &slot;
    }
    return nullptr;
  };
  switch (value.type) {
    case Type::date:
    case Type::time:
    case Type::email:
    case Type::percent: {
      const Slot* slot = other(chosen.call.slots);
      if (slot == nullptr) slot = other(chosen.slots);
      if (slot == nullptr ||
          (value.type == Type::email && (act.effects & sends) == 0 && is_linked(plain(value.text), chosen)))
        return std::nullopt;
      return other_value(chosen, *slot, value);
    }
    case Type::money: {
      const std::vector<Slot>& slots = has_money(chosen.call.slots) ? chosen.call.slots : chosen.slots;
      const Slot* const slot = other(slots);
      if (slot == nullptr || std::fabs(money_sum(matching) - value.number) < 0.005) return std::nullopt;
      if (!is_bound_money(act, value) && is_seen(value)) return std::nullopt;
      // The price of an object is no amount that was paid.
      static const Pattern amount(
          R"(amount|total|refund|charge|payment|paid|fee|credit|deposit|discount|value|budget)");
      if ((chosen.call.effects & pays & act.effects) == 0 && (act.effects & pays) != 0 && !amount.in(slot->key))
        return std::nullopt;
      return other_value(chosen, *slot, value);
    }
    case Type::number: {
      const Slot* const slot = counted_slot(act, value, chosen);
      return slot != nullptr ? std::optional(other_value(chosen, *slot, value)) : std::nullopt;
    }
    case Type::id: break;
    case Type::name: return std::nullopt;
  }
  return id_mismatch(value, act, refused, chosen);
}

std::optional<Ruling> Ledger::id_mismatch(const Value& value, const Act& act, const Action* refused,
                                          const Action& chosen) const {
  if (refused != nullptr && refused->receipt == Receipt::failed)
    return contradicted(*refused, fmt::format("the call of {} for {} failed at seq {}", refused->call.name,
                                              shown(value), refused->seq));
  if (!is_seen(value)) {
    for (const auto* slots : {&chosen.call.slots, &chosen.slots}) {
      for (const Slot& slot : *slots) {
        if (slot.value.type == Type::id && !forgot_ && !is_clerical(slot.key) &&
            shape_of(slot.value.text) == shape_of(value.text))
          return other_value(chosen, slot, value);
      }
    }
    if (!value.own_mark || forgot_) return std::nullopt;
    return contradicted(chosen, fmt::format("no result contains {}; the receipt of {} is at seq {}", shown(value),
                                            chosen.call.name, chosen.seq));
  }
  if (const Slot* const slot = named_slot(value, act, chosen)) return other_value(chosen, *slot, value);
  const bool fits = std::any_of(act.values.begin(), act.values.end(),
                                [&](const Value& one) { return is_id(one) && has_value(chosen, one); });
  if (fits || is_linked(plain(value.text), chosen)) return std::nullopt;
  for (const Slot& slot : chosen.call.slots) {
    if (is_id(slot.value) && !is_clerical(slot.key)) return other_value(chosen, slot, value);
  }
  return std::nullopt;
}

// A name that the run knows from the record of another object is the name of another target.
std::optional<Ruling> Ledger::name_mismatch(const Act& act, const std::vector<const Action*>& matching,
                                            const Action& chosen) const {
  for (const Value& name : act.names) {
    const bool known = std::any_of(matching.begin(), matching.end(), [&](const Action* action) {
      return has_value(*action, name) || is_linked(name.text, *action);
    });
    if (known) continue;
    std::set<std::string, std::less<>> keys;  // members that have the name in other records
    for (const Action& read : reads_) {
      for (const Scalar* scalar : scalars_with(read, name.text)) {
        if (scalar->plain == name.text) keys.insert(scalar->key);
      }
    }
    for (const Action& about : reads_) {
      if (keys.empty()) break;
      for (const Value& id : chosen.targets) {
        for (const Scalar* own : scalars_with(about, id.plain)) {
          // The same member of the record of the call's id has another name.
          const auto other = std::find_if(about.scalars.begin(), about.scalars.end(), [&](const Scalar& scalar) {
            return scalar.record == own->record && keys.contains(scalar.key) && scalar.plain != name.text;
          });
          if (other != about.scalars.end())
            return contradicted(
                chosen, fmt::format("the call of {} at seq {} concerns {}, not {}", chosen.call.name, chosen.seq,
                                    preview(other->text, 40), preview(name.text.substr(1), 40)));
        }
      }
    }
  }
  return std::nullopt;
}

namespace {

// "at Osteria Luna", and the call has another place; "to Priya", and the call has another owner.
std::optional<Ruling> slot_mismatch(const Act& act, const Action& chosen) {
  struct Place {
    Pattern before;
    Pattern key;
  };
  static const std::vector<Place> places = [] {
    std::vector<Place> made;
    const auto add = [&](const char* before, const char* key) { made.push_back({Pattern(before), Pattern(key)}); };
    add(R"(\b(?:at|in)\s+(?:the\s+)?$)",
        R"(^(?:restaurant|hotel|venue|place|location|property|restaurant_name|hotel_name|venue_name|room|city|store|clinic)$)");
    add(R"(\b(?:to|with)\s+(?:the\s+)?$)",
        R"(^(?:to|recipient|assignee|owner|assigned_to|new_owner|agent|stage|status|new_stage|queue|team|destination|arrival_city|destination_city|to_city|recipient_name|attendee)$)");
    add(R"(\bfor\s+(?:the\s+)?$)",
        R"(^(?:guest|guest_name|passenger|passenger_name|name|customer|customer_name|contact|contact_name|company|account|account_name|full_name|client|patient)$)");
    add(R"(\bto\s+$)", R"(^(?:to|destination|arrival|city|to_city)$)");
    return made;
  }();
  const std::string clause = plain(act.clause);
  for (const Value& name : act.names) {
    if (has_value(chosen, name)) continue;
    const std::string_view before = std::string_view(act.clause).substr(0, name.begin);
    for (const Place& place : places) {
      if (!place.before.in(before)) continue;
      for (const Scalar& scalar : chosen.call.arguments) {
        const bool named = scalar.text.size() > 3 && scalar.text.size() < 60 &&
                           scalar.text.find_first_of("0123456789@{") == std::string::npos &&
                           scalar.text.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos;
        if (!named || !place.key.in(scalar.key) || has(clause, plain(scalar.text))) continue;
        // "Maria" is a part of "Maria Silva".
        const std::string text = plain(scalar.text);
        if (has(text, name.text) || has(name.text, text)) continue;
        return contradicted(
            chosen, fmt::format("the call of {} at seq {} has {} {}, not {}", chosen.call.name, chosen.seq, scalar.key,
                                preview(scalar.text, 40), preview(name.text.substr(1, name.text.size() - 2), 40)));
      }
    }
  }
  return std::nullopt;
}

// Returns the letters and digits only: "closedwon" for "Closed Won".
std::string squeezed(std::string_view text) {
  std::string result = plain(text);
  std::erase(result, ' ');
  return result;
}

std::vector<std::string> words_in(std::string_view pool) {
  std::vector<std::string> words;
  for (std::size_t at = 1; at < pool.size();) {
    const std::size_t end = std::min(pool.find(' ', at), pool.size());
    words.emplace_back(pool.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// "business", and the call has economy.
std::optional<Ruling> alternative_mismatch(const Act& act, const Action& chosen) {
  std::set<std::string> said, done;
  for (std::string& word : words_in(plain(act.clause))) {
    if (alternatives_of(word) != 0) said.insert(std::move(word));
  }
  if (said.empty()) return std::nullopt;
  for (const Scalar& scalar : chosen.call.arguments) {
    if (scalar.text.size() > 200) continue;
    for (std::string& word : words_in(plain(scalar.text))) {
      if (alternatives_of(word) != 0) done.insert(std::move(word));
    }
  }
  const auto alias = [](const std::string& word) {
    return word == "prod" ? "production" : word == "dev" ? "development" : word == "pro" ? "professional" : word;
  };
  for (const std::string& one : said) {
    const int group = alternatives_of(one);
    const std::string* different = nullptr;
    bool same = false;
    for (const std::string& two : done) {
      if (alternatives_of(two) != group) continue;
      const bool claimed = said.contains(two) || alias(one) == alias(two);
      same = same || claimed;
      if (!claimed) different = &two;
    }
    if (different != nullptr && !same)
      return contradicted(chosen, fmt::format("the call of {} at seq {} has {}, not {}", chosen.call.name, chosen.seq,
                                              *different, one));
  }
  return std::nullopt;
}

// "changed the stage to Proposal", and the member stage of the call is another.
std::optional<Ruling> member_mismatch(const Act& act, const Action& chosen) {
  static const Pattern target(R"re(\b(?:to|as|is now|=)\s+(?:be\s+)?["'“`]?([^.,;:()"'”`]{2,40}))re");
  static const Pattern members(
      R"(^(?:new_)?(?:status|stage|state|priority|owner|assignee|role|plan|tier|class|cabin|cabin_class|severity|category|label|language|currency|room_type|fare_class|type|title|job_title|industry|source|stage_?name|deal_?stage|lifecycle_?stage|owner_?name|column|list)$)");
  static const Pattern states(R"(^(?:new_)?(?:status|stage|state|stage_?name|deal_?stage|column|list)$)");
  const bool moves =
      act.verb == "move" || act.verb == "advance" || act.verb == "mark" || act.verb == "set" || act.verb == "change";
  const std::string clause = plain(act.clause);
  const auto claimed = target.find(act.clause);
  if (!claimed) return std::nullopt;
  const std::string said = plain(claimed->group);
  for (const Scalar& scalar : chosen.call.arguments) {
    if (scalar.number || !members.in(scalar.key) || scalar.text.size() > 40 ||
        scalar.text.find_first_of("0123456789") != std::string::npos)
      continue;
    std::string key = scalar.key.starts_with("new_") ? scalar.key.substr(4) : scalar.key;
    if (!has(clause, " " + key.substr(0, key.find('_'))) && !(moves && states.in(scalar.key))) continue;
    const std::string done = squeezed(scalar.text);
    if (has(squeezed(act.clause), done) || has(done, squeezed(said)) || has(chosen.call.pool, said) ||
        has(chosen.pool, said))
      continue;
    return contradicted(chosen, fmt::format("the call of {} at seq {} has {} {}, not {}", chosen.call.name, chosen.seq,
                                            scalar.key, preview(scalar.text, 40), preview(claimed->group, 40)));
  }
  return std::nullopt;
}

}  // namespace

// "5 contacts", and the receipts count 3.
std::optional<Ruling> Ledger::count_mismatch(const Act& act, const std::vector<const Action*>& matching) const {
  if (!act.count || *act.count < 2) return std::nullopt;
  static const Pattern counts(
      R"(^(?:(?:num_|total_)?(?:updated|created|sent|deleted|succeeded|success|processed|merged|imported|affected|modified|delivered|inserted|archived|cancelled|closed|assigned|exported)(?:_count|_rows|_records)?|count|rows|row_count|rowcount|rows_affected|affected_rows|success_count|ok)$)");
  std::int64_t single = 0;
  const Action* last = nullptr;
  for (const Action* action : matching) {
    if (!succeeded(*action)) continue;
    last = action;
    std::optional<double> counted;
    for (const Scalar& scalar : action->scalars) {
      if (scalar.number && counts.in(scalar.key)) counted = std::strtod(scalar.text.c_str(), nullptr);
    }
    if (counted && static_cast<std::int64_t>(*counted) == *act.count) return std::nullopt;
    if (counted) {
      if (static_cast<std::int64_t>(*counted) < *act.count && matching.size() == 1)
        return contradicted(*action, fmt::format("the receipt of {} at seq {} counts {}, not {}", action->call.name,
                                                 action->seq, *counted, *act.count));
      single += static_cast<std::int64_t>(*counted);
    } else {
      single += static_cast<std::int64_t>(action->call.list);
    }
  }
  if (last == nullptr || single >= *act.count) return std::nullopt;
  const bool shell = std::any_of(matching.begin(), matching.end(),
                                 [](const Action* action) { return action->call.edits || action->scalars.empty(); });
  if (shell && single == 1 && matching.size() == 1) return std::nullopt;
  return contradicted(*last, fmt::format("{} calls of {} succeeded, not {}", single, last->call.name, *act.count));
}

namespace {

// "pushed to main", and the command line pushes another branch.
std::optional<Ruling> branch_mismatch(const Act& act, const Action& chosen) {
  static const Pattern said(
      R"(\b(?:to|on|onto)\s+(?:the\s+)?(?:remote\s+)?`?(?:origin/)?(main|master|develop|[\w.-]+/[\w./-]+)\b)");
  static const Pattern done(R"( git push (?:u |f |force |set upstream )*[a-z]+ ((?:\w+ ?)+))");
  const auto branch = said.find(act.clause);
  if ((act.effects & pushes) == 0 || act.verb != "push" || !branch) return std::nullopt;
  const auto line = done.find(chosen.call.pool);
  if (!line || has(line->group, "head") || has(" " + std::string(line->group) + " ", plain(branch->group)))
    return std::nullopt;
  return contradicted(chosen, fmt::format("the command at seq {} does not push {}", chosen.seq, branch->group));
}

}  // namespace

std::optional<Ruling> Ledger::mismatch(const Act& act, const std::vector<const Action*>& matching,
                                       const Action& chosen) const {
  for (const Value& value : act.values) {
    if (auto ruling = value_mismatch(value, act, matching, chosen)) return ruling;
  }
  if (auto ruling = name_mismatch(act, matching, chosen)) return ruling;
  if (matching.size() == 1) {
    if (auto ruling = slot_mismatch(act, chosen)) return ruling;
  }
  if (auto ruling = alternative_mismatch(act, chosen)) {
    const bool elsewhere = std::any_of(matching.begin(), matching.end(), [&](const Action* action) {
      return action != &chosen && succeeded(*action) && !alternative_mismatch(act, *action);
    });
    if (!elsewhere) return ruling;
  }
  if (auto ruling = member_mismatch(act, chosen)) return ruling;
  if (auto ruling = branch_mismatch(act, chosen)) return ruling;
  return count_mismatch(act, matching);
}

}  // namespace muniment::evidence::run_judge
