// Implements SHA-256 with a state that can be exported and resumed. SHA-256 processes its input in blocks of 64 bytes;
// its state after each block, the chaining value, has 32 bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/crypto/sha256.hpp"

namespace muniment {

class ChainedSha256 {
 public:
  ChainedSha256();
  // Resumes after `bytes_before` bytes, a multiple of 64, that lead to this value.
  ChainedSha256(const Hash& chaining_value, std::uint64_t bytes_before);
  ~ChainedSha256();
  void update(std::string_view bytes);
  Hash chaining_value() const;  // only after whole blocks
  Hash finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muniment
