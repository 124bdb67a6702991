// Reads one checkpoint from a file and judges its trustworthiness on its own, as in a proof or in a bundle.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/signed_note.hpp"
#include "base/ids.hpp"
#include "verify/finding.hpp"
#include "verify/signed/signatures.hpp"

namespace muniment::verify {

struct CheckpointFile {
  Checkpoint checkpoint;
  std::optional<Note> note;  // nullopt: it is unsigned
};

// Errors: corrupt.
Result<CheckpointFile> parse_checkpoint_file(std::string_view text);

// Returns whether one of the keys belongs to the log with this id. The name of a key contains its log's id.
bool one_is_of(const Uuid& log_id, std::span<const VerifierKey> keys);

// Names the required key, the signers (or their absence) and the given keys. A single note cannot show whether it is
// forged or the key belongs to another log, so the text names both.
std::string wrong_key_text(const std::string& origin, const Note& note, std::span<const VerifierKey> keys);

// Judges whether the checkpoint belongs to this log and is signed by one of `keys`. Deviations become findings.
Signatures judge_checkpoint(const CheckpointFile& file, const Uuid& log_id, const std::vector<VerifierKey>& keys,
                            Findings& findings);

}  // namespace muniment::verify
