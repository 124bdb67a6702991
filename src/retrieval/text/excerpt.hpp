// Excerpts for cards that are safe to show: white space is collapsed; control characters and characters that reorder or
// hide text are removed.
#pragma once

#include <string>
#include <string_view>

namespace muniment::retrieval {

// Converts as much text as `bytes_max` shown bytes need, without cutting to that size.
std::string shown(std::string_view text, std::size_t bytes_max);

}  // namespace muniment::retrieval
