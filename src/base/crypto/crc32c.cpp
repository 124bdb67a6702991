#include "base/crypto/crc32c.hpp"

#include <array>
#include <cstring>

namespace muniment {
namespace {

constexpr std::uint32_t reversed_polynomial = 0x82f63b78;

constexpr std::array<std::uint32_t, 256> table = [] {
  std::array<std::uint32_t, 256> out{};
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? reversed_polynomial : 0);
    out[i] = value;
  }
  return out;
}();

std::uint32_t portable(std::string_view bytes, std::uint32_t crc) {
  for (const char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::string_view bytes, std::uint32_t crc) {
  std::uint64_t wide = crc;
  while (bytes.size() >= sizeof wide) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
    bytes.remove_prefix(sizeof word);
  }
  return portable(bytes, static_cast<std::uint32_t>(wide));
}
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~by_instruction(bytes, ~before);
#endif
  return ~portable(bytes, ~before);
}

}  // namespace muniment
