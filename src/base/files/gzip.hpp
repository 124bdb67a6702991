// Decompresses gzip, as clients send it in HTTP bodies.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment {

// Returns the content of a gzip file, also of one with several members. Errors: invalid_argument unless the input is
// complete; too_large as soon as the content exceeds `bytes_max`.
Result<std::string> gunzip(std::string_view bytes, std::size_t bytes_max);

}  // namespace muniment
