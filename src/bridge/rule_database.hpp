// The built-in rules as the build has compiled them (compile_rules.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muniment::bridge {

inline constexpr std::uint32_t rule_width_unbounded = 0xffffffff;

// The rules for each form of a text, with their numbers as ids: `output` and `outbound` for the text itself, by scope;
// `split` those with this tag; `reversed` all without the tag `forward`.
enum class RuleSet { output, outbound, split, reversed };

std::string_view rule_texts();                  // JSON
std::string_view rule_database(RuleSet rules);  // a serialised database of Vectorscan
std::uint32_t rule_width(std::size_t rule);  // greatest distance of the end that is reported for a match from its begin

}  // namespace muniment::bridge
