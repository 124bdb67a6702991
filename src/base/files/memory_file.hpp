// Creates unnamed in-memory files, for callees that take a descriptor or /proc/self/fd/N.
#pragma once

#include <string_view>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment {

// Returns a file positioned at its beginning. `name` is the name in /proc. Errors: system_error.
Result<Fd> memory_file(const char* name, std::string_view bytes);

}  // namespace muniment
