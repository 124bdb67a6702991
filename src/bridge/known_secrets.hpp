// Secrets of this machine, such as the values of environment variables, that are recognised without being held: only
// their HMACs with a random key, and 16 bits of a keyed hash of their first eight bytes, are kept.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "bridge/text_view.hpp"

namespace muniment::bridge {

class KnownSecrets {
 public:
  KnownSecrets();
  // Adds a value, also without its separators. One shorter than limits::known_secret_bytes_min is ignored: it would
  // occur by chance.
  void add(std::string_view value);
  bool empty() const { return macs_.empty(); }
  // Returns where the values occur.
  std::vector<Span> find(std::string_view text) const;

 private:
  Salt key_;
  std::uint64_t factor_ = 0;
  std::vector<std::vector<std::uint32_t>> lengths_;  // by the hash of the first bytes
  std::set<Hash> macs_;
};

}  // namespace muniment::bridge
