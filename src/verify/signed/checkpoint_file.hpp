// One checkpoint as it lies in a file, and whether it may be believed when nothing else is at hand: in a proof and
// in a bundle.
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
  std::optional<Note> note;  // none: it is unsigned
};

// Errors: corrupt.
Result<CheckpointFile> parse_checkpoint_file(std::string_view text);

// Is one of them a log's key, of the log with this id? A key has its log's name.
bool one_is_of(const Uuid& log_id, std::span<const VerifierKey> keys);

// Which key is needed, who signed (nobody, where the note has no signatures), and which keys were given. Nobody can say
// of a single note whether it is forged or the key is another log's: both are named.
std::string wrong_key_text(const std::string& origin, const Note& note, std::span<const VerifierKey> keys);

// Is it of this log, and signed by a key of `keys`? What is wrong becomes a finding.
Signatures judge_checkpoint(const CheckpointFile& file, const Uuid& log_id, const std::vector<VerifierKey>& keys,
                            Findings& findings);

}  // namespace muniment::verify
