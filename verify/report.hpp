// Formats the verdict as text and as JSON. Its words and exit codes are a contract (docs/protocol.md).
#pragma once

#include <string>

#include "verify/verify.hpp"

namespace muniment::verify {

std::string text_of(const Report& report);
std::string json_of(const Report& report);

}  // namespace muniment::verify
