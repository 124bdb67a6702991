// Asks the keepers of checkpoints for the newest one that they hold, at a start and every minute: a copy of the
// database and of the data folder that is older shows nothing of what came after it, but a keeper elsewhere does.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "audit/witness/submitter.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/result.hpp"

namespace muniment::audit {

// Returns the newest checkpoint by one of these keys that a folder or a witness holds; nullopt: it holds none. A bucket
// is not asked. Errors: unavailable; corrupt if a folder's last notes are of no use.
Result<std::optional<Checkpoint>> held_checkpoint(const Keeper& keeper, std::span<const VerifierKey> keys);

}  // namespace muniment::audit
