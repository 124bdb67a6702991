// What Postgres's jsonb makes of a value: it puts a space after , and : and writes numbers out without an exponent,
// so that 1e300 takes 301 digits. CHECKs count that text, and `parse` would refuse it as an integer over 64 bits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json/json.hpp"

namespace muniment::json {

// An upper bound of octet_length(value::jsonb::text).
std::size_t jsonb_bytes_max(const Value& value);

// The text of a jsonb with the numbers that `parse` would refuse in a form that it accepts, of the same decimal value:
// 100000000000000000000 becomes 1e20. What no accepted number can have made stays as it is.
std::string from_jsonb(std::string_view text);

}  // namespace muniment::json
