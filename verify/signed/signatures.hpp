// Records who signed and witnessed the verified events.
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
  std::string name;        // name on the command line, or the name of its key
  std::int64_t upto = -1;  // the last seq that it cosigned; -1: none
  Time last;               // time of that cosignature
};

struct Signatures {
  std::int64_t checkpoints = 0;  // number of notes that were checked
  std::int64_t upto = -1;        // the last seq that a trusted key signed
  std::vector<SignerFact> keys;  // trusted keys that signed
  std::vector<WitnessFact> witnesses;
  bool keys_are_the_logs_own = false;
  bool without_key = false;             // notes exist, but no key to check them
  std::string wrong_key;                // signers and given keys, if none of the given keys signed
  std::vector<std::int64_t> continues;  // sizes of the given checkpoints that the events lead to
  std::string newest;                   // the note of the largest size that a trusted key signed
};

}  // namespace muniment::verify
