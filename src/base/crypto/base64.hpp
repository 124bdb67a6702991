// Encodes and decodes Base64 (RFC 4648, section 4): with padding, without line breaks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/crypto/sha256.hpp"

namespace muniment {

std::string to_base64(std::string_view bytes);

// Decodes only texts that to_base64 can produce; nullopt for white space, missing padding, or surplus bits that are not
// zero.
std::optional<std::string> from_base64(std::string_view text);
std::optional<Hash> hash_from_base64(std::string_view text);  // exactly 32 bytes

}  // namespace muniment
