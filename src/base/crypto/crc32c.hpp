// CRC-32C (Castagnoli), which detects damage of up to 32 bits in a row; not a protection against intent.
#pragma once

#include <cstdint>
#include <string_view>

namespace muniment {

// `before` is the checksum of the bytes before these.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

}  // namespace muniment
