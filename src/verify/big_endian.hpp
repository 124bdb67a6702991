// Unsigned integers as Postgres' binary COPY and the keys of the vector shard write them: big-endian.
#pragma once

#include <cstdint>
#include <string_view>

namespace muniment::verify {

// At most eight bytes.
inline std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

}  // namespace muniment::verify
