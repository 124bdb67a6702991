// Holds an action that a sentence states against the calls, their receipts and what was read afterwards.
#include "evidence/run_judge/actions/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "evidence/run_judge/actions/match.hpp"
#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {
using Type = Value::Type;

std::vector<const Action*> Ledger::matching(const Act& act) const {
  std::vector<const Action*> found;
  static const Pattern no_edit(
      R"(^(?:push|release|deploy|merge|install|migrate|promote|restart|commit|publish|ship)$)");
  // A change of the code can concern whatever the sentence names, except things that are never files.
  const bool edits_files =
      !no_edit.in(act.verb) && std::none_of(act.nouns.begin(), act.nouns.end(), [](const std::string& noun) {
        static const Pattern never(
            R"(^(?:flights?|hotels?|trains?|meetings?|refunds?|payments?|pr|mr|pull|reservations?|bookings?|tickets?|contacts?|invoices?|deals?|emails?)$)");
        return never.in(noun);
      });
  for (const Action& action : actions_) {
    if (action.call.opaque && !act.unknown && !is_about(act, action)) continue;
    if (action.call.edits && !edits_files) continue;
    const bool same = (action.call.effects & act.effects) != 0 || names_verb(action.call.title, act.verb);
    // "refund" in the receipt of a cancellation
    const bool implied = std::any_of(act.nouns.begin(), act.nouns.end(), [&](const std::string& noun) {
      return effects_of_noun(noun) != 0 && thing_of(noun) != general_thing && has(action.pool, " " + noun);
    });
    // A booking or a cancellation includes its payment.
    const bool payment =
        !act.active && (act.effects & pays) != 0 && succeeded(action) && !action.call.edits && action.payment;
    if (action.call.opaque) {
      found.push_back(&action);
      continue;
    }
    if (payment || (same && (action.call.edits || shares_thing(act, action))) || implied) found.push_back(&action);
  }
  return found;
}

// Returns the last attempt at the action that fits the sentence best.
const Action* Ledger::chosen(const Act& act, const std::vector<const Action*>& matching) const {
  const Action* best = nullptr;
  int best_score = -1;
  for (const Action* action : matching) {
    int score = 0;
    for (const Value& value : act.values) {
      const bool in_call = holds(action->call.slots, value) || (is_id(value) && has_value(*action, value));
      score += in_call ? (is_id(value) ? 4 : 2) : 0;
    }
    for (const Value& name : act.names) score += has_value(*action, name) || is_linked(name.text, *action) ? 3 : 0;
    score += names_verb(action->call.title, act.verb) ? 2 : 0;
    for (const std::string& noun : act.nouns)
      score += has(action->call.pool, " " + noun.substr(0, noun.size() - (noun.ends_with("s") ? 1 : 0))) ? 2 : 0;
    if (score < best_score) continue;
    const bool tie = score == best_score;
    const bool repeated = tie && best != nullptr && succeeded(*best) && action->receipt == Receipt::failed &&
                          (already(*action) || action->call.edits);
    if (repeated) continue;
    best = action;
    best_score = score;
  }
  return best;
}

bool Ledger::is_linked(const std::string& name, const Action& action) const {
  for (const auto* kept : {&reads_, &actions_}) {
    for (const Action& other : *kept) {
      if (!has_words(other, name)) continue;
      for (const Value& id : action.targets) {
        if (in_one_record(other, name, id.plain)) return true;
      }
    }
  }
  return false;
}

bool Ledger::is_seen(const Value& value) const {
  const std::string text = plain(value.text);
  if (has(user_text_, text)) return true;
  for (const auto* kept : {&reads_, &actions_}) {
    for (const Action& action : *kept) {
      if (has_words(action, text) || has_value(action, value)) return true;
    }
  }
  return false;
}

namespace {

// Returns whether a status that was read afterwards excludes the action.
bool is_excluded_by(const Act& act, std::string_view status) {
  static const Pattern gone(
      R"(^(?:cancell?ed|deleted|void(?:ed)?|refunded|declined|expired|not[_ ]found|released|available|removed|archived|inactive)$)");
  static const Pattern alive(
      R"(^(?:active|confirmed|booked|open|scheduled|upcoming|paid|ticketed|reserved|live|enabled|pending|in[_ ]progress)$)");
  static const Pattern unfinished(R"(^(?:open|new|in[_ ]progress|pending|todo|unresolved|waiting|active|reopened)$)");
  static const Pattern unwell(
      R"(^(?:degraded|crashloopbackoff|pending|in[_ ]progress|rolling[_ ]back|rolled[_ ]back|stopped|down)$)");
  const bool bad = is_failed_word(status);
  if (act.verb == "close" || act.verb == "resolve" || act.verb == "complete") return unfinished.in(status) || bad;
  if ((act.effects & merges) != 0) return unfinished.in(status) || status == "closed";
  if ((act.effects & cancels) != 0) return alive.in(status);
  if ((act.effects & (sends | pays)) != 0 && (act.effects & creates) == 0)
    return is_pending_word(status) || bad || status == "unpaid" || status == "not_refunded";
  if ((act.effects & deploys) != 0 && (act.effects & updates) == 0)
    return bad || is_pending_word(status) || unwell.in(status);
  if ((act.effects & creates) != 0) return gone.in(status) || bad || is_pending_word(status);
  return bad;
}

bool is_status_key(std::string_view key) {
  return key == "status" || key == "state" || key.ends_with("_status") || key.ends_with("_state") || key == "stage";
}

bool is_free_text(std::string_view key) {
  static const Pattern text(
      R"(note|reason|body|description|message|comment|content|text|subject|query|summary|title|sql|code|old|file)");
  return text.in(key);
}

bool is_equal(const Scalar& a, const Scalar& b) {
  const std::string one = plain(a.text), two = plain(b.text);
  if (has(one, two) || has(two, one)) return true;
  const std::vector<Value> x = values_in(a.text), y = values_in(b.text);
  for (const Value& left : x) {
    for (const Value& right : y) {
      if (is_same(left, right)) return true;
    }
  }
  return x.empty() != y.empty();
}

int times(const std::vector<Scalar>& scalars, std::string_view key) {
  return static_cast<int>(
      std::count_if(scalars.begin(), scalars.end(), [&](const Scalar& one) { return one.key == key; }));
}

// Returns the scalar of a later result with another value of the same member.
const Scalar* changed_member(const Action& chosen, const std::vector<Scalar>& later, int record) {
  for (const Scalar& asked : chosen.call.arguments) {
    if (is_free_text(asked.key) || asked.text.size() > 100 || times(chosen.call.arguments, asked.key) != 1) continue;
    const Scalar* found = nullptr;
    int count = 0;
    for (const Scalar& scalar : later) {
      if (scalar.key != asked.key || (record >= 0 && scalar.record != record)) continue;
      found = &scalar;
      ++count;
    }
    if (count == 1 && !is_equal(asked, *found)) return found;
  }
  return nullptr;
}

std::optional<Ruling> unlike_read(const Act& act, const Action& chosen, const std::vector<Value>& targets,
                                  const Action& read) {
  const bool asked = std::any_of(targets.begin(), targets.end(), [&](const Value& id) {
    return holds(read.call.slots, id) || has(read.call.pool, id.plain);
  });
  const bool same_args =
      (act.effects & deploys) != 0 &&
      std::any_of(chosen.call.arguments.begin(), chosen.call.arguments.end(), [&](const Scalar& one) {
        return one.text.size() > 2 && std::any_of(read.call.arguments.begin(), read.call.arguments.end(),
                                                  [&](const Scalar& two) { return one.text == two.text; });
      });
  int record = -1;
  for (const Scalar& scalar : read.scalars) {
    for (const Value& id : targets) {
      if (record < 0 && scalar.plain == id.plain) record = scalar.record;
    }
  }
  if (record < 0 && !asked && !same_args) return std::nullopt;
  const auto ruling = [&](std::string_view key, std::string_view text) {
    return contradicted(read, fmt::format("{} shows {} {} at seq {}, after the call at seq {}", read.call.name, key,
                                          preview(text, 40), read.seq, chosen.seq));
  };
  if (asked && (act.effects & creates) != 0 && (act.effects & cancels) == 0 && read.receipt == Receipt::failed)
    return ruling("", read.status);
  for (const Scalar& scalar : read.scalars) {
    if (!is_status_key(scalar.key) || (record >= 0 && scalar.record != record)) continue;
    std::string status = scalar.text;
    for (char& c : status) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (!act.modest && !act.tells_pending && (!act.tells_undoing || (act.effects & cancels) != 0) &&
        is_excluded_by(act, status) && !names_verb(plain(status), act.verb))
      return ruling(scalar.key, scalar.text);
  }
  if (const Scalar* const other = changed_member(chosen, read.scalars, record)) return ruling(other->key, other->text);
  return std::nullopt;
}

}  // namespace

// Compares the action with what later calls did and showed.
std::optional<Ruling> Ledger::unlike_later(const Act& act, const Action& chosen) const {
  const std::vector<Value>& targets = chosen.targets;
  std::int64_t next = std::numeric_limits<std::int64_t>::max();  // the next call with the same target
  for (const Action& later : actions_) {
    if (later.seq <= chosen.seq) continue;
    const bool shared = is_same_target(chosen, later);
    if (shared) next = std::min(next, later.seq);
    if (chosen.call.undoing || !succeeded(later) || later.call.edits) continue;
    const Effects same = chosen.call.effects & later.call.effects;
    const bool code = (chosen.call.effects & (commits | pushes | deploys | merges)) != 0 &&
                      (later.call.effects & undoes) != 0 && (act.effects & (commits | pushes | deploys | merges)) != 0;
    if (later.call.undoing && !act.tells_undoing && (act.effects & pays) == 0 &&
        ((shared && (later.call.effects & (cancels | undoes)) != 0) || code))
      return contradicted(later,
                          fmt::format("{} at seq {} undid the call at seq {}", later.call.name, later.seq, chosen.seq));
    if (shared && same != 0 && later.receipt == Receipt::done && later.call.name == chosen.call.name) {
      if (const Scalar* const other = changed_member(chosen, later.call.arguments, -1);
          other != nullptr && !has(plain(act.clause), plain(other->text)) && (act.effects & updates) != 0 &&
          (act.effects & creates) == 0)
        return contradicted(later, fmt::format("the later call of {} at seq {} set {} to {}", later.call.name,
                                               later.seq, other->key, preview(other->text, 40)));
    }
  }
  for (const Action& read : reads_) {
    if (read.seq <= chosen.seq || read.seq > next) continue;
    const auto ruling = unlike_read(act, chosen, targets, read);
    // A later read may show that the action took effect after all.
    const bool later_good =
        ruling && std::any_of(reads_.begin(), reads_.end(), [&](const Action& again) {
          return again.seq > read.seq && again.call.pool == read.call.pool && !unlike_read(act, chosen, targets, again);
        });
    if (ruling && !later_good) return ruling;
  }
  return std::nullopt;
}

// The status of the object was the same before the call, so that it is not the status of the action.
bool Ledger::was_pending_before(const Action& action) const {
  const std::size_t blank = action.status.find(' ');
  const std::string key = action.status.substr(0, blank);
  const std::string text = blank == std::string::npos ? "" : action.status.substr(blank + 1);
  return std::any_of(reads_.begin(), reads_.end(), [&](const Action& read) {
    return read.seq < action.seq && std::any_of(read.scalars.begin(), read.scalars.end(), [&](const Scalar& scalar) {
             return scalar.key == key && scalar.text == text;
           });
  });
}

Ruling Ledger::outcome(const Act& act, const std::vector<const Action*>& matching, const Action& chosen) const {
  const auto at = [&](std::string_view what) {
    return fmt::format("the call of {} at seq {} {}{}{}", chosen.call.name, chosen.seq, what,
                       chosen.status.empty() ? "" : ": ", chosen.status);
  };
  switch (chosen.receipt) {
    case Receipt::failed: return contradicted(chosen, at("failed"));
    case Receipt::unknown:
      return {.verdict = Verdict::inconclusive, .seq = chosen.seq, .why = at("has no recorded outcome")};
    case Receipt::partly:
      if (!act.modest && !act.tells_failure) return contradicted(chosen, at("succeeded only in part"));
      break;
    case Receipt::pending: {
      static const Pattern required(R"(requires|needs|awaiting|pending|not)");
      const bool named = names_verb(plain(chosen.status), act.verb) && !required.in(chosen.status);
      if (act.modest || act.tells_pending || was_pending_before(chosen) || named) break;
      // A later read may show that it is done.
      if (const auto later =
              std::find_if(reads_.rbegin(), reads_.rend(),
                           [&](const Action& read) { return read.seq > chosen.seq && is_same_target(chosen, read); });
          later != reads_.rend() && later->receipt == Receipt::done && !later->status.empty())
        break;
      return contradicted(chosen, at("was accepted, and not yet done"));
    }
    case Receipt::done: break;
  }
  if (act.all) {
    for (const Action* action : matching) {
      const bool again = std::any_of(matching.begin(), matching.end(), [&](const Action* other) {
        return other->seq > action->seq && succeeded(*other) &&
               (is_same_target(*action, *other) || action->targets.empty());
      });
      if (action->receipt == Receipt::failed && !again && !already(*action) && !action->call.edits)
        return contradicted(*action, fmt::format("the call of {} at seq {} failed", action->call.name, action->seq));
    }
  }
  if (auto ruling = unlike_later(act, chosen)) return *ruling;
  return {.verdict = Verdict::supported, .seq = chosen.seq, .why = at("succeeded")};
}

std::optional<Ruling> Ledger::hidden_failure(std::string_view sentence) const {
  std::vector<Value> named = values_in(sentence);
  for (Value& name : names_in(sentence)) named.push_back(std::move(name));
  for (const Action& action : actions_) {
    if (action.call.shell || action.call.edits) continue;
    if (action.receipt != Receipt::failed && action.receipt != Receipt::pending) continue;
    if (action.receipt == Receipt::pending && was_pending_before(action)) continue;
    for (const Value& value : named) {
      const bool target = is_id(value) || value.type == Type::date || value.type == Type::name ||
                          (value.own_mark && value.type != Type::money);
      const bool in_call =
          holds(action.call.slots, value) || (value.type == Type::name && has(action.call.pool, value.text));
      if (!target || !in_call) continue;
      const bool later =
          std::any_of(actions_.begin(), actions_.end(),
                      [&](const Action& other) {
                        return other.seq > action.seq && other.call.effects != 0 && other.receipt == Receipt::done;
                      }) ||
          std::any_of(reads_.begin(), reads_.end(), [&](const Action& read) {
            return action.receipt == Receipt::pending && read.seq > action.seq && has_value(read, value);
          });
      if (!later)
        return contradicted(
            action, fmt::format("the call of {} for {} at seq {} {}: {}", action.call.name, shown(value), action.seq,
                                action.receipt == Receipt::failed ? "failed" : "is pending", action.status));
    }
  }
  return std::nullopt;
}

// Rules on the checks of a service by the newest result that shows them.
Ruling Ledger::judge_service(std::string_view service) const {
  const Pattern named("\\b(?:ci|pipelines?|workflows?|checks|builds?)\\b");
  const Action* newest = nullptr;
  for (const auto* kept : {&reads_, &actions_}) {
    for (const Action& action : *kept) {
      if (named.in(action.call.pool) && (newest == nullptr || action.seq > newest->seq)) newest = &action;
    }
  }
  if (newest == nullptr)
    return {
        .verdict = Verdict::unsupported, .seq = {}, .why = fmt::format("no call shows {}", service), .absent = true};
  const std::string_view shown = newest->receipt == Receipt::done      ? "shows success"
                                 : newest->receipt == Receipt::pending ? "shows a run that is not finished"
                                                                       : "shows a failure";
  return {.verdict = newest->receipt == Receipt::done ? Verdict::supported : Verdict::contradicted,
          .seq = newest->seq,
          .why = fmt::format("{} at seq {} {}", newest->call.name, newest->seq, shown)};
}

Ruling Ledger::absence(const Act& act) const {
  if (act.unknown && (act.nouns.empty() || act.values.empty()))
    return {.verdict = Verdict::unsupported, .seq = {}, .why = {}, .absent = false, .no_claim = true};
  const std::string verb = act.verb.empty() ? "done" : act.verb;
  if (!act.active) {
    // "The flight was booked with insurance" tells what a record shows.
    for (const Action& read : reads_) {
      const bool about = act.values.empty() || std::any_of(act.values.begin(), act.values.end(),
                                                           [&](const Value& value) { return has_value(read, value); });
      const bool dated =
          act.past && std::any_of(read.slots.begin(), read.slots.end(), [&](const Slot& slot) {
            return is_clerical(slot.key) && std::any_of(act.values.begin(), act.values.end(),
                                                        [&](const Value& value) { return is_same(value, slot.value); });
          });
      if (dated)
        return {.verdict = Verdict::supported,
                .seq = read.seq,
                .why = fmt::format("{} shows it at seq {}", read.call.name, read.seq)};
      if (!act.verb.empty() && !names_verb(read.pool, act.verb)) continue;
      if (about && read.receipt != Receipt::failed)
        return {.verdict = Verdict::supported,
                .seq = read.seq,
                .why = fmt::format("{} shows it at seq {}", read.call.name, read.seq)};
    }
    if (act.verb.empty() && act.values.empty())
      return {.verdict = Verdict::unsupported, .seq = {}, .why = {}, .absent = false, .no_claim = true};
  }
  for (const Action& action : actions_) {
    if (action.call.opaque)
      return {.verdict = Verdict::inconclusive,
              .seq = action.seq,
              .why = fmt::format("the effects of {} at seq {} are not known", action.call.name, action.seq)};
  }
  const std::string object = act.nouns.empty() ? std::string() : " (" + joined(act.nouns, ", ") + ")";
  return {.verdict = Verdict::unsupported,
          .seq = {},
          .why = fmt::format("no call of the run can have done it: {}{}", verb, object),
          .absent = true};
}

Ruling Ledger::judge(const Act& act) const {
  const std::vector<const Action*> calls = matching(act);
  const Action* const best = chosen(act, calls);
  if (best == nullptr) return absence(act);
  if (best->receipt != Receipt::failed) {
    if (auto ruling = mismatch(act, calls, *best)) return *ruling;
  }
  return outcome(act, calls, *best);
}

}  // namespace muniment::evidence::run_judge
