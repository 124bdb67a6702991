// The verdict's five words and their exit codes: a contract (docs/protocol.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace muniment::verify {

enum class Verdict : std::uint8_t { verified, tampered, is_unsigned, unreadable, incomplete };

std::string_view name_of(Verdict verdict);

// 0 verified, 1 tampered or corrupt, 2 consistent but unsigned (0 if that is enough), 4 unreadable,
// 5 incomplete; 3, wrong usage, is the command line's.
int exit_code_of(Verdict verdict, bool unsigned_ok);

}  // namespace muniment::verify
