// HMAC with SHA-256 (RFC 2104; OpenSSL): whoever lacks the key can make none.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/crypto/sha256.hpp"

namespace muniment {

// Of the parts, one after the other.
Hash hmac_sha256(std::string_view key, std::initializer_list<std::string_view> parts);
// Takes the same time wherever they differ.
bool equal_hashes(std::string_view a, std::string_view b);

}  // namespace muniment
