// Computes SHA-256 (OpenSSL), one-shot and streaming, and converts hexadecimal text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace muniment {

using Hash = std::array<std::uint8_t, 32>;
using Salt = std::array<std::uint8_t, 32>;

// Hashes the concatenated parts.
Hash sha256(std::initializer_list<std::string_view> parts);
inline Hash sha256(std::string_view bytes) { return sha256({bytes}); }

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(std::string_view bytes);
  Hash finish();  // resets the object

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Salt random_salt();
void random_bytes(std::uint8_t* out, std::size_t size);

std::string_view view(const Hash& hash);  // the 32 bytes
std::string to_hex(std::string_view bytes);
inline std::string to_hex(const Hash& hash) { return to_hex(view(hash)); }
std::optional<std::string> from_hex(std::string_view text);  // lower or upper case, even length
std::optional<Hash> hash_from_hex(std::string_view text);    // exactly 64 lower-case digits

}  // namespace muniment
