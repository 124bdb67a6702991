// Excerpts for cards, made safe to show: white space collapsed, control characters and what reorders or hides text
// gone.
#pragma once

#include <string>
#include <string_view>

namespace muniment::retrieval {

// No more than is needed for `bytes_max` bytes of it, and not cut to them.
std::string shown(std::string_view text, std::size_t bytes_max);

}  // namespace muniment::retrieval
