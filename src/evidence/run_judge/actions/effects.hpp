// The effects that an action has on the world, by the words that name it in sentences and in tool calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::run_judge {

// A set of effects: a booking is created, updated, cancelled.
using Effects = std::uint32_t;
inline constexpr Effects creates = 1, updates = 2, cancels = 4, sends = 8, pays = 16, commits = 32, pushes = 64,
                         deploys = 128, installs = 256, merges = 512, undoes = 1024;
inline constexpr Effects any_effect = 2047;

// Returns the lower-case words of a name: "crm.updateContact" is crm, update, contact.
std::vector<std::string> words_of(std::string_view name);

// Returns the effects of a verb in the form of a tool's name ("book") or of a sentence ("booked"); 0: none is known.
Effects effects_of_verb(std::string_view word);
// Returns the effects that a noun implies: "refunds", "bookings".
Effects effects_of_noun(std::string_view word);
// Returns the base form of a verb: "book" for "booked"; empty: the word is none.
std::string_view base_of(std::string_view word);
bool is_reading_verb(std::string_view word);
// Returns whether a verb is as often a noun in the names of tools: "order_status".
bool is_noun_too(std::string_view word);

// Returns alternatives of a pattern: all past participles, or all base forms.
std::string past_forms();
std::string base_forms();

// Returns the number of the group of things to which a noun belongs: hotel and room are one; 0: unknown.
int thing_of(std::string_view noun);
// A general word, such as booking, denotes things of several groups.
inline constexpr int general_thing = 1;
inline constexpr int request_thing = 19;  // a pull request

// Returns the group of words that exclude each other, such as economy and business; 0: none.
int alternatives_of(std::string_view word);

}  // namespace muniment::evidence::run_judge
