// Replaces secrets in JSON, by the rules of exec/scrub.hpp.
#pragma once

#include <cstddef>
#include <string>

namespace muniment::cli {

// Scrubs every string value, and every string or number in a member whose name implies a secret. All other bytes are
// unchanged. The log need not accept the JSON text. Returns the number of replaced secrets.
std::size_t scrub_json(std::string& json);

}  // namespace muniment::cli
