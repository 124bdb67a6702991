// Reads and writes the state of a verification, from which the next one resumes: the edge of the tree and the state of
// every run. The state is as trustworthy as the place that stored it (docs/format.md, Verification state).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "verify/log/run_life.hpp"
#include "verify/signed/key_ring.hpp"

namespace muniment::verify {

struct SavedState {
  Uuid log_id;
  std::int64_t size = 0;  // number of verified events
  Hash root{};
  std::string edge;
  std::string note;  // the signed checkpoint of this size; empty: none
  Time saved_at;
  std::vector<VerifierKey> keys;  // keys that were trusted
  std::vector<Rotation> rotations;
  Heads heads;
  std::vector<Adoption> adopted;
  std::unordered_map<std::int64_t, std::string> run_ids;  // by run_no
  std::int64_t run_no_max = 0;
};

std::string json_of(const SavedState& state);

// Errors: corrupt, also if the edge does not lead to the root.
Result<SavedState> parse_saved_state(std::string_view text);

}  // namespace muniment::verify
