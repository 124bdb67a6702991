// Computes HMAC with SHA-256 (RFC 2104; OpenSSL).
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/crypto/sha256.hpp"

namespace muniment {

// Computes the HMAC of the concatenated parts.
Hash hmac_sha256(std::string_view key, std::initializer_list<std::string_view> parts);
// Compares in constant time.
bool equal_hashes(std::string_view a, std::string_view b);

}  // namespace muniment
