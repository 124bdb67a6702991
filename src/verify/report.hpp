// The verdict, for people and as JSON; its words and exit codes are a contract (docs/protocol.md).
#pragma once

#include <string>

#include "verify/verify.hpp"

namespace muniment::verify {

std::string text_of(const Report& report);
std::string json_of(const Report& report);

}  // namespace muniment::verify
