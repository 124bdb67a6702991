// Sums money without rounding drift: a decimal text becomes an integer of picos (10^-12), so that every fold of the
// same events gives the same sum (docs/format.md, Usage).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muniment::events {

__extension__ using Picos = unsigned __int128;

// Parses one event's amount: the text of a non-negative JSON number of at most 100 bytes, exponent within ±308, cut to
// twelve decimals, below 10^15. Returns nullopt for any other text, which is not counted.
std::optional<Picos> parse_amount(std::string_view text);

// Formats a sum for the state document, "0.0025", and parses it; a sum may exceed the limit of one amount.
std::string sum_text(Picos sum);
std::optional<Picos> parse_sum(std::string_view text);

}  // namespace muniment::events
