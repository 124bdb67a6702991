// The verdict, for people and as JSON; its words and exit codes are a contract (docs/protocol.md).
#pragma once

#include <string>

#include "verify/verify.hpp"

namespace muniment::verify {

// 0 verified, 1 tampered or corrupt, 2 consistent but unsigned (0 if that is enough), 4 unreadable,
// 5 incomplete; 3, wrong usage, is the command line's.
int exit_code_of(Verdict verdict, bool unsigned_ok);

std::string text_of(const Report& report);
std::string json_of(const Report& report);

}  // namespace muniment::verify
