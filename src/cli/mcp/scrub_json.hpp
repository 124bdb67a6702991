// Replaces secrets in JSON, by the rules of exec/scrub.hpp.
#pragma once

#include <cstddef>
#include <string>

namespace muniment::cli {

// Every string value, and every string or number in a member whose name says that it is a secret. Everything else keeps
// its bytes. The text need not be JSON that the log accepts. Returns how many secrets were replaced.
std::size_t scrub_json(std::string& json);

}  // namespace muniment::cli
