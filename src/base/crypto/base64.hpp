// Base64 as RFC 4648, section 4: with padding, without line breaks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/crypto/sha256.hpp"

namespace muniment {

std::string to_base64(std::string_view bytes);

// nullopt for anything but what to_base64 writes: no white space, no missing padding, no bits set
// that no byte holds.
std::optional<std::string> from_base64(std::string_view text);
std::optional<Hash> hash_from_base64(std::string_view text);  // exactly 32 bytes

}  // namespace muniment
