// Encrypts a whole capsule with a passphrase (libsodium): Argon2id derives the key, and a stream of XChaCha20-Poly1305
// messages holds the file (docs/format.md, Encrypted capsule). A changed, cut, reordered or extended file is refused.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment::capsule {

// Writes a new file, which gets its name when it is complete. Errors: conflict if `to` exists; invalid_argument if
// `from` is no capsule, or is encrypted already.
Status encrypt(const std::string& from, const std::string& to, std::string_view passphrase);

// The same. Errors: denied for a wrong passphrase or a changed file, which cannot be told apart at the begin;
// corrupt for damage after it.
Status decrypt(const std::string& from, const std::string& to, std::string_view passphrase);

}  // namespace muniment::capsule
