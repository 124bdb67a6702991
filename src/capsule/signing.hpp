// Signs a capsule. A signature is a data frame: a signed note (C2SP) that names the capsule, the number of data frames
// before it and their chain. Frames may be appended after it; it does not cover those.
#pragma once

#include <string>

#include "base/crypto/signed_note.hpp"
#include "base/result.hpp"

namespace muniment::capsule {

// Checks the whole capsule, then signs and commits. Returns what was signed. Errors: those of opening for writing;
// corrupt.
Result<Checkpoint> sign(const std::string& path, const NoteSigner& signer);

}  // namespace muniment::capsule
