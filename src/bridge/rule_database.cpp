#include "bridge/rule_database.hpp"

#include <iterator>

#include "bridge/rule_widths.hpp"  // generated; its time is that of the databases

// The files that compile_rules has written become data of the program.
#define MUNIMENT_EMBED(name, file)                                                                        \
  asm(".section .rodata\n.balign 64\n.global " #name "\n" #name ":\n.incbin \"" file "\"\n.global " #name \
      "_end\n" #name "_end:\n.byte 0\n.previous\n");                                                      \
  extern "C" const char name[];                                                                           \
  extern "C" const char name##_end[];

MUNIMENT_EMBED(muniment_rule_texts, MUNIMENT_RULES "rules.json")
MUNIMENT_EMBED(muniment_rules_output, MUNIMENT_RULES "rules_output.hs")
MUNIMENT_EMBED(muniment_rules_outbound, MUNIMENT_RULES "rules_outbound.hs")
MUNIMENT_EMBED(muniment_rules_reversed, MUNIMENT_RULES "rules_reversed.hs")
MUNIMENT_EMBED(muniment_rules_split, MUNIMENT_RULES "rules_split.hs")

namespace muniment::bridge {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

}  // namespace

std::string_view rule_texts() { return between(muniment_rule_texts, muniment_rule_texts_end); }

std::string_view rule_database(RuleSet rules) {
  switch (rules) {
    case RuleSet::output: return between(muniment_rules_output, muniment_rules_output_end);
    case RuleSet::outbound: return between(muniment_rules_outbound, muniment_rules_outbound_end);
    case RuleSet::split: return between(muniment_rules_split, muniment_rules_split_end);
    case RuleSet::reversed: return between(muniment_rules_reversed, muniment_rules_reversed_end);
  }
  return {};
}

std::uint32_t rule_width(std::size_t rule) {
  return rule < std::size(rule_widths) ? rule_widths[rule] : rule_width_unbounded;
}

}  // namespace muniment::bridge
