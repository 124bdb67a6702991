// Compares the words and values of a statement with those of a call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evidence/run_judge/actions/ledger.hpp"

namespace muniment::evidence::run_judge {

bool has(std::string_view text, std::string_view part);
bool succeeded(const Action& action);
// Returns whether the verb, or its participle, is a word of the text.
bool names_verb(std::string_view pool, const std::string& verb);
bool shares_thing(const Act& act, const Action& action);
bool has_payment(const Action& action);
bool holds(const std::vector<Slot>& slots, const Value& value);
// Returns whether a plain text is in the call or in its result.
bool has_words(const Action& action, std::string_view text);
bool has_value(const Action& action, const Value& value);
// Returns whether the call has an id or a date of the sentence.
bool is_about(const Act& act, const Action& action);
bool is_id(const Value& value);
// A member that says when the record was written is no value of the action.
bool is_clerical(std::string_view key);
// Ids of the target of a call. An id of the user is one only if there is no other.
std::vector<Value> targets_of(const Action& action);
bool is_same_target(const Action& a, const Action& b);
Ruling contradicted(const Action& action, std::string why);
bool already(const Action& action);
// Returns whether the record contains the other one, or is the same.
bool is_inside(const Action& action, int inner, int outer);
// Returns the scalars that contain a plain text.
std::vector<const Scalar*> scalars_with(const Action& action, std::string_view text);
// Returns whether a record contains both, one of them as its own member.
bool in_one_record(const Action& action, const std::string& a, const std::string& b);
// Returns the form of an id: "a9.9" for "v12.4".
std::string shape_of(std::string_view text);
std::string shown(const Value& value);

}  // namespace muniment::evidence::run_judge
