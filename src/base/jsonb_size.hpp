// How long Postgres's jsonb writes a value: it puts a space after , and : and writes numbers out
// without an exponent, so that 1e300 takes 301 digits. CHECKs count that text.
#pragma once

#include <cstddef>

#include "base/json.hpp"

namespace muniment::json {

// An upper bound of octet_length(value::jsonb::text).
std::size_t jsonb_bytes_max(const Value& value);

}  // namespace muniment::json
