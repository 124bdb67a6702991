// The verdict's words and their exit codes: a contract (docs/protocol.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace muniment::verify {

enum class Verdict : std::uint8_t {
  verified,
  tampered,
  is_unsigned,
  unsigned_tail,
  unknown_schema,
  wrong_key,
  unreadable,
  incomplete
};

std::string_view name_of(Verdict verdict);

// 0 verified, 1 tampered or corrupt, 2 consistent, but unsigned, with an unsigned tail (0 if that is enough for both)
// or signed by no key that was given, 4 unreadable, 5 incomplete; 3, wrong usage, is the command line's.
int exit_code_of(Verdict verdict, bool unsigned_ok);

}  // namespace muniment::verify
