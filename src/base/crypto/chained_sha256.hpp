// SHA-256 whose state can be seen and taken up again. SHA-256 goes through its input block by block of 64 bytes, and
// what it has come to after each of them, the chaining value, is 32 bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/crypto/sha256.hpp"

namespace muniment {

class ChainedSha256 {
 public:
  ChainedSha256();
  // As one that has been given the `bytes_before`, whole blocks, that lead to this value.
  ChainedSha256(const Hash& chaining_value, std::uint64_t bytes_before);
  ~ChainedSha256();
  void update(std::string_view bytes);
  Hash chaining_value() const;  // after whole blocks
  Hash finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muniment
