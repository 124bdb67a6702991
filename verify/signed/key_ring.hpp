// Holds the keys of a log (docs/format.md, Rotation): the given ones, and those that the log's own history names. A
// named key becomes trusted when a trusted signature covers the event that names it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/signed_note.hpp"

namespace muniment::verify {

struct LogKey {
  std::int64_t named_at = -1;    // seq of the first key.rotated that names it; -1: it was given
  std::int64_t retired_at = -1;  // seq of the key.rotated that replaced it
  bool trusted = false;
};

// A key.rotated of run _log.
struct Rotation {
  std::int64_t seq = -1;
  Time recorded_at;
  std::string body;
};

class KeyRing {
 public:
  explicit KeyRing(const std::vector<VerifierKey>& given);

  void see(const Rotation& rotation);
  // Trusts a key that an earlier verify trusted.
  void trust(const VerifierKey& key) { facts_[note_key(key, -1)].trusted = true; }

  // Trusts keys that events below `size` name, because a trusted signature covers these events. Returns true if a key
  // was added.
  bool trust_named_below(std::int64_t size);

  const std::vector<VerifierKey>& keys() const { return keys_; }  // given and named ones, including those of witnesses
  const LogKey& fact(std::size_t key) const { return facts_[key]; }
  const std::vector<Rotation>& rotations() const { return rotations_; }

 private:
  struct Naming {
    std::int64_t seq = -1;
    std::size_t key = 0;
  };
  std::size_t note_key(VerifierKey key, std::int64_t seq);

  std::vector<VerifierKey> keys_;
  std::vector<LogKey> facts_;    // one per key
  std::vector<Naming> namings_;  // in the order of seq
  std::vector<Rotation> rotations_;
};

}  // namespace muniment::verify
