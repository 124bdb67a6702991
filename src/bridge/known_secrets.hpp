// Secrets of this machine, such as the values of environment variables, that are recognised without being held: only
// their HMACs with a random key, and 16 bits of a keyed rolling hash, are kept.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "bridge/text_view.hpp"

namespace muniment::bridge {

class KnownSecrets {
 public:
  KnownSecrets();
  // A value shorter than limits::known_secret_bytes_min is ignored: it would occur by chance.
  void add(std::string_view value);
  bool empty() const { return lengths_.empty(); }
  // Returns where the values occur.
  std::vector<Span> find(std::string_view text) const;

 private:
  struct Length {
    std::vector<bool> hashes;  // of 16 bits
    std::set<Hash> macs;
  };
  void find_length(std::string_view text, std::size_t size, const Length& length, std::vector<Span>& found) const;

  Salt key_;
  std::uint64_t base_ = 0;
  std::map<std::size_t, Length> lengths_;
};

}  // namespace muniment::bridge
