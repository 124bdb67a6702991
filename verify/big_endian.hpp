// Reads big-endian unsigned integers, as in Postgres' binary COPY.
#pragma once

#include <cstdint>
#include <string_view>

namespace muniment::verify {

// Returns the number in `bytes`, which are at most 8.
inline std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

}  // namespace muniment::verify
