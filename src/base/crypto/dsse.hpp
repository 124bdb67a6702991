// Reads, signs and verifies DSSE envelopes, version 1 (github.com/secure-systems-lab/dsse). A signature covers the
// payload and its type. See docs/format.md, Attestations.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/signed_note.hpp"
#include "base/result.hpp"

namespace muniment {

inline constexpr std::size_t envelope_bytes_max = 32 * 1024;  // so that it fits into the body of an event
inline constexpr std::size_t envelope_signatures_max = 16;
inline constexpr std::size_t envelope_keys_max = 64;  // trusted keys

struct EnvelopeSignature {
  std::string keyid;  // a hint, which is not signed; may be empty
  std::string bytes;
};

struct Envelope {
  std::string payload_type;
  std::string payload;
  std::vector<EnvelopeSignature> signatures;

  // Returns the text that is signed: "DSSEv1 28 application/vnd.in-toto+json 2 {}".
  std::string signed_text() const;
  std::string text() const;
  // Errors: too_large; invalid_argument for any other text that is not an envelope with 1 to 16 signatures.
  static Result<Envelope> parse(std::string_view text);
};

// Adds a signature of `signed_text()`. Its keyid is the key's name and id, "name+1a2b3c4d".
void sign_envelope(Envelope& envelope, const NoteSignature& signature);

// Returns the first of `keys` that signed the envelope; nullptr if none did. Keys of witnesses are ignored.
const VerifierKey* signer_of(const Envelope& envelope, std::span<const VerifierKey> keys);

// Reads the file of the setting attestation_keys; an empty path gives no keys. Errors: those of the file and its keys,
// and too_large for more than 64 of them.
Result<std::vector<VerifierKey>> read_trusted_keys(const std::string& path);

}  // namespace muniment
