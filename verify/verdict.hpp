// Defines the verdicts with their names and exit codes, which are a contract (docs/protocol.md).
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

// Returns 0 for verified; 1 for tampered or corrupt; 2 for consistent, but unsigned, with an unsigned tail, or signed
// by none of the given keys (`unsigned_ok` turns the first two into 0); 4 for unreadable; 5 for incomplete. The command
// line uses 3 for wrong usage.
int exit_code_of(Verdict verdict, bool unsigned_ok);

}  // namespace muniment::verify
