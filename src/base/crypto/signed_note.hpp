// Signed notes, verifier keys and checkpoints as C2SP specifies them (signed-note, tlog-checkpoint,
// tlog-cosignature): the text forms in which a log's promises travel. docs/format.md, Checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/ed25519.hpp"
#include "base/crypto/sha256.hpp"
#include "base/result.hpp"

namespace muniment {

enum class KeyType : std::uint8_t {
  ed25519 = 0x01,      // signs the note's text
  cosignature = 0x04,  // a witness: signs a time and the text
};

// A verifier key ("vkey"): name+id+base64(type ‖ public key).
struct VerifierKey {
  std::string name;  // not empty; no space, no '+'
  std::uint32_t id = 0;
  KeyType type = KeyType::ed25519;
  PublicKey key{};

  VerifierKey() = default;
  VerifierKey(std::string name, KeyType type, const PublicKey& key);  // with the id that follows from them
  std::string text() const;
  // Errors: invalid_argument, also for an id that does not follow from the key.
  static Result<VerifierKey> parse(std::string_view text);
  bool operator==(const VerifierKey&) const = default;
};

// One key a line; empty lines and lines that start with '#' are skipped.
Result<std::vector<VerifierKey>> parse_verifier_keys(std::string_view text);

struct NoteSignature {
  std::string name;
  std::uint32_t id = 0;
  std::string bytes;  // 64; of a cosignature 8 (its time, big-endian seconds) + 64

  std::string line() const;  // "— name base64\n"
};

struct Note {
  std::string text;  // with its last newline
  std::vector<NoteSignature> signatures;

  std::string signed_text() const;  // the whole file
  // Errors: corrupt. A note has 1 to 64 signatures and at most 64 KiB here.
  static Result<Note> parse(std::string_view file);
  // The signature lines alone, as a witness answers them.
  static Result<std::vector<NoteSignature>> parse_signatures(std::string_view lines);
};

// A private key with its name: "PRIVATE+KEY+name+id+base64(type ‖ seed)".
class NoteSigner {
 public:
  NoteSigner(std::string name, KeyType type, SigningKey key);
  static Result<NoteSigner> parse(std::string_view text);
  std::string text() const;

  const VerifierKey& verifier() const { return verifier_; }
  // A signature over `text`; a cosignature is made at `time_s` (seconds since 1970).
  NoteSignature sign(std::string_view text, std::uint64_t time_s = 0) const;

 private:
  VerifierKey verifier_;
  SigningKey key_;
};

// Who signed, of `keys`. Signatures by other keys are ignored. Errors: corrupt when a signature that
// names a key of `keys` does not verify.
struct Signed {
  const VerifierKey* key = nullptr;  // of the span that was given
  std::uint64_t time_s = 0;          // of a cosignature
};
Result<std::vector<Signed>> signers_of(const Note& note, std::span<const VerifierKey> keys);

// What the text of a checkpoint says: exactly three lines.
struct Checkpoint {
  std::string origin;
  std::int64_t size = 0;
  Hash root{};

  std::string text() const;
  static Result<Checkpoint> parse(std::string_view text);  // errors: corrupt
};

}  // namespace muniment
