// Bytes as a file that has no name and no place on a disk: for whoever takes a descriptor, or /proc/self/fd/N.
#pragma once

#include <string_view>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment {

// To be read from its beginning. `name` is what /proc shows. Errors: system_error.
Result<Fd> memory_file(const char* name, std::string_view bytes);

}  // namespace muniment
