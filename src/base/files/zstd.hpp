// Zstandard, one frame at a time.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment {

// One frame that knows its own length, with its checksum.
std::string compress(std::string_view bytes);

// Errors: corrupt for what is not one such frame; too_large when it says that it holds more than `bytes_max`.
Result<std::string> decompress(std::string_view frame, std::size_t bytes_max);

}  // namespace muniment
