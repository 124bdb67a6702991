// Who vouches for what was verified.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace muniment::verify {

struct SignerFact {
  std::string vkey;
  std::int64_t named_at = -1;  // seq of the key.rotated that names it; -1: it was given
  std::int64_t upto = -1;      // the last seq that it signed
};

struct WitnessFact {
  std::string name;        // as the command line names it, or its key's
  std::int64_t upto = -1;  // the last seq that it vouches for; -1: it vouches for nothing
  Time last;               // when it did
};

struct Signatures {
  std::int64_t checkpoints = 0;  // notes that were looked at
  std::int64_t upto = -1;        // the last seq that a trusted key signed
  std::vector<SignerFact> keys;  // trusted, and one of the signers
  std::vector<WitnessFact> witnesses;
  bool keys_are_the_logs_own = false;
  bool without_key = false;             // there are notes, and no key to check them with
  std::string wrong_key;                // who signed, and which keys were given, where none of those signed
  std::vector<std::int64_t> continues;  // sizes of the checkpoints that the command line gave and the events lead to
  std::string newest;                   // the note of the largest size that a trusted key signed
};

}  // namespace muniment::verify
