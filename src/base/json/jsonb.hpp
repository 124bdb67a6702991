// Predicts and reverses how Postgres' jsonb prints a value: with a space after , and :, and numbers without an
// exponent, so that 1e300 has 301 digits. CHECKs count that text, and `parse` would refuse such a number as an integer
// beyond 64 bits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json/json.hpp"

namespace muniment::json {

// Returns an upper bound of octet_length(value::jsonb::text).
std::size_t jsonb_bytes_max(const Value& value);

// Rewrites the numbers of a jsonb text that `parse` would refuse in an accepted form of the same decimal value:
// 100000000000000000000 becomes 1e20. A number that no accepted input could produce is unchanged.
std::string from_jsonb(std::string_view text);

}  // namespace muniment::json
