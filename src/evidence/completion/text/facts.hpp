// Finds concrete facts in the tokens of a text: numbers that count or measure, paths, identifiers, times, addresses.
#pragma once

#include <cstddef>
#include <string_view>

namespace muniment::evidence::completion {

// Returns the token without the punctuation around it.
std::string_view core_of(std::string_view token);

// Returns the half facts that the token states: 2 for a path, an identifier, a time or a measured number, 1 for a bare
// number or an absolute one ("100%", "0 failed"), otherwise 0. `next` is the following word, in any case.
std::size_t half_facts_of(std::string_view core, std::string_view next);

// Both properties of a token, computed from its shape in one pass.
struct TokenFacts {
  bool identifier = false;
  std::size_t half_facts = 0;
};
TokenFacts facts_of_token(std::string_view core, std::string_view next);

bool is_identifier(std::string_view core);  // snake_case, camelCase, a::b, a.b(), path/to/x, --flag

}  // namespace muniment::evidence::completion
