// Limits the depth of TOML texts before they are parsed: the parser's tables are nested, and it destroys them
// recursively.
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace muniment {

inline constexpr int toml_key_parts_max = 16;  // the parser itself limits nested arrays and inline tables to 256

// Errors: invalid_argument for a dotted key with more parts, with its line.
Status check_toml_depth(std::string_view text);

}  // namespace muniment
