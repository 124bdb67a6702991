// Signs data that leaves the log and verifies signatures with Ed25519 (RFC 8032, OpenSSL).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

namespace muniment {

using PublicKey = std::array<std::uint8_t, 32>;
using Seed = std::array<std::uint8_t, 32>;  // the private key
using Signature = std::array<std::uint8_t, 64>;

class SigningKey {
 public:
  static SigningKey generate();
  static SigningKey from_seed(const Seed& seed);
  ~SigningKey();
  SigningKey(SigningKey&&) noexcept;
  SigningKey& operator=(SigningKey&&) noexcept;

  Seed seed() const;
  PublicKey public_key() const;
  Signature sign(std::string_view message) const;

 private:
  struct Key;
  explicit SigningKey(std::unique_ptr<Key> key);
  std::unique_ptr<Key> key_;
};

// Returns false for a signature of another size, message or key.
bool verify_signature(const PublicKey& key, std::string_view message, std::string_view signature);

}  // namespace muniment
