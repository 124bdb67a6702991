#include "base/crypto/base64.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace muniment {
namespace {

constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t no_digit = 0xff;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(no_digit);
  for (std::size_t i = 0; i < base64_digits.size(); ++i) {
    values[static_cast<unsigned char>(base64_digits[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}
constexpr std::array<std::uint8_t, 256> base64_values = make_values();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    text += base64_digits[group >> 18];
    text += base64_digits[group >> 12 & 63];
    text += count > 1 ? base64_digits[group >> 6 & 63] : '=';
    text += count > 2 ? base64_digits[group & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const std::size_t padding = !last || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint8_t value =
          k < 4 - padding ? base64_values[static_cast<unsigned char>(text[i + k])] : std::uint8_t{0};
      if (value == no_digit) return std::nullopt;
      group = group << 6 | value;
    }
    if (padding > 0 && (group & ((1u << (8 * padding)) - 1)) != 0) return std::nullopt;
    for (std::size_t k = 0; k < 3 - padding; ++k) bytes += static_cast<char>(group >> (16 - 8 * k) & 0xff);
  }
  return bytes;
}

std::optional<Hash> hash_from_base64(std::string_view text) {
  const auto bytes = from_base64(text);
  Hash hash;
  if (!bytes || bytes->size() != hash.size()) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), hash.begin());
  return hash;
}

}  // namespace muniment
