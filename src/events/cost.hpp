// Money summed without drift: a decimal text becomes a whole number of picos (10^-12), so that
// every fold of the same events gives the same sum (docs/format.md, Usage).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muniment::events {

__extension__ using Picos = unsigned __int128;

// An amount of one event: a non-negative JSON number's text of at most 100 bytes, its exponent
// within ±308, cut to twelve decimals, below 10^15. nullopt: it does not count.
std::optional<Picos> parse_amount(std::string_view text);

// A sum as the state document says it, "0.0025", and back; a sum may pass what one amount may be.
std::string sum_text(Picos sum);
std::optional<Picos> parse_sum(std::string_view text);

}  // namespace muniment::events
