// Implements signed notes, verifier keys and checkpoints as specified by C2SP (signed-note, tlog-checkpoint,
// tlog-cosignature). See docs/format.md, Checkpoint notes and keys.
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
  ed25519 = 0x01,      // signs the text of the note
  cosignature = 0x04,  // for witnesses: signs a time and the text
};

// A verifier key ("vkey") has the form name+id+base64(type ‖ public key).
struct VerifierKey {
  std::string name;  // not empty; without spaces and '+'
  std::uint32_t id = 0;
  KeyType type = KeyType::ed25519;
  PublicKey key{};

  VerifierKey() = default;
  VerifierKey(std::string name, KeyType type, const PublicKey& key);  // derives the id
  std::string text() const;
  // Errors: invalid_argument, also if the id does not match the key.
  static Result<VerifierKey> parse(std::string_view text);
  bool operator==(const VerifierKey&) const = default;
};

// Parses one key per line; skips empty lines and lines that start with '#'.
Result<std::vector<VerifierKey>> parse_verifier_keys(std::string_view text);

struct NoteSignature {
  std::string name;
  std::uint32_t id = 0;
  std::string bytes;  // 64; for a cosignature 8 (its time, big-endian seconds) + 64

  std::string line() const;  // "— name base64\n"
};

struct Note {
  std::string text;  // includes its last newline
  std::vector<NoteSignature> signatures;

  std::string signed_text() const;  // the whole file
  // Errors: corrupt. A note must have 1 to 64 signatures and at most 64 KiB.
  static Result<Note> parse(std::string_view file);
  // Parses only signature lines, as returned by a witness.
  static Result<std::vector<NoteSignature>> parse_signatures(std::string_view lines);
};

// A private key with its name, in the form "PRIVATE+KEY+name+id+base64(type ‖ seed)".
class NoteSigner {
 public:
  NoteSigner(std::string name, KeyType type, SigningKey key);
  static Result<NoteSigner> parse(std::string_view text);
  // Reads a file with a key. Errors: not_found; denied if other users may read it; corrupt.
  static Result<NoteSigner> read(const std::string& path);
  std::string text() const;

  const VerifierKey& verifier() const { return verifier_; }
  // Signs `text`. A cosignature includes `time_s` (seconds since 1970).
  NoteSignature sign(std::string_view text, std::uint64_t time_s = 0) const;

 private:
  VerifierKey verifier_;
  SigningKey key_;
};

// A signer among `keys`. Signatures by other keys are ignored. Errors: corrupt if a signature that names a key of
// `keys` does not verify.
struct Signed {
  const VerifierKey* key = nullptr;  // points into the given span
  std::uint64_t time_s = 0;          // time of a cosignature
};
Result<std::vector<Signed>> signers_of(const Note& note, std::span<const VerifierKey> keys);

// The content of a checkpoint: exactly three lines.
struct Checkpoint {
  std::string origin;
  std::int64_t size = 0;
  Hash root{};

  std::string text() const;
  static Result<Checkpoint> parse(std::string_view text);  // errors: corrupt
};

}  // namespace muniment
