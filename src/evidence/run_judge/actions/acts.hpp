// Statements that an action was carried out, by the agent or in the passive: "I have booked the flight", "refund
// issued".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/run_judge/actions/effects.hpp"
#include "evidence/run_judge/actions/values.hpp"
#include "evidence/run_judge/sentences.hpp"

namespace muniment::evidence::run_judge {

inline constexpr std::size_t acts_max = 8;  // statements of one sentence

struct Act {
  std::string verb;  // base form; empty: "done", "all set"
  Effects effects = 0;
  std::size_t verb_at = 0;         // position in the sentence
  std::string clause;              // the clause as written
  std::vector<std::string> nouns;  // the known nouns of the object
  std::vector<Value> values;       // values of the clause, those of an earlier state excluded
  std::vector<Value> names;
  std::optional<std::int64_t> count;  // "5 contacts"
  bool active = false;                // the agent says that it acted
  bool modest = false;                // the clause tells of a request, a draft or a queue
  bool all = false;                   // "all", "both", "every"
  bool unknown = false;               // the effects of the verb are not known
  bool past = false;                  // "was booked", which may tell of an earlier state
  // The message tells that something was undone, is pending, or failed.
  bool tells_undoing = false, tells_pending = false, tells_failure = false;
};

// Adds the values of the lines after the sentence that have a label: "Date: April 9".
void add_details(Act& act, const std::string& lines);

// Sets the members that depend on the whole message.
void add_context(Act& act, std::string_view message);

std::vector<Act> acts_in(const Sentence& sentence);

}  // namespace muniment::evidence::run_judge
