// Compresses and decompresses single Zstandard frames.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment {

// Returns one frame with its content size and a checksum.
std::string compress(std::string_view bytes);

// Errors: corrupt unless the input is one such frame; too_large if its recorded content size exceeds `bytes_max`.
Result<std::string> decompress(std::string_view frame, std::size_t bytes_max);

}  // namespace muniment
