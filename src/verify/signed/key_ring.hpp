// The keys of a log (docs/format.md, Rotation): those that the verifier was given, and those that its own history
// names. A key that is only named is trusted once a signature that is trusted covers the event that names it.
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
  // What an earlier verify came to trust.
  void trust(const VerifierKey& key) { facts_[note_key(key, -1)].trusted = true; }

  // Trusts what the events below `size` name: a trusted signature covers them. True: that was new.
  bool trust_named_below(std::int64_t size);

  const std::vector<VerifierKey>& keys() const { return keys_; }  // given or named, witnesses' too
  const LogKey& fact(std::size_t key) const { return facts_[key]; }
  const std::vector<Rotation>& rotations() const { return rotations_; }

 private:
  struct Naming {
    std::int64_t seq = -1;
    std::size_t key = 0;
  };
  std::size_t note_key(VerifierKey key, std::int64_t seq);

  std::vector<VerifierKey> keys_;
  std::vector<LogKey> facts_;    // one a key
  std::vector<Naming> namings_;  // in the order of seq
  std::vector<Rotation> rotations_;
};

}  // namespace muniment::verify
