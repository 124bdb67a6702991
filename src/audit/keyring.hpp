// The keys that sign a log, in <data>/keys/ (docs/format.md, Checkpoints): outside of the database, so that write
// access to the log does not allow signing it. A new key is activated in steps, and a crash may interrupt each: it is
// written as log.key.next, announced by key.rotated, then renamed to log.key. The old key remains as log.key.old until
// a checkpoint with both signatures is published.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/crypto/signed_note.hpp"
#include "base/result.hpp"

namespace muniment::audit {

// The last signed checkpoint. Later signed checkpoints must extend it.
struct LastSigned {
  Checkpoint checkpoint;
  std::string note;
};

class Keyring {
 public:
  // Creates `folder` (0700) if it is missing. Errors: denied if other users may read a private key; corrupt for an
  // invalid file.
  static Result<Keyring> open(const std::string& folder);

  bool can_sign() const { return current_.has_value(); }
  const std::vector<VerifierKey>& verifiers() const { return verifiers_; }  // oldest first
  const std::optional<LastSigned>& last_signed() const { return last_signed_; }
  // Returns whether a key of the log signed it: the current private key or, without one, a published key.
  bool signed_last() const;
  // A key that was created and perhaps announced. The log shows whether it is active.
  const std::optional<NoteSigner>& next() const { return next_; }

  // Old keys sign too, until `forget_old`.
  Note sign(const Checkpoint& checkpoint) const;
  // Signs any other text with the current key, which must be present.
  NoteSignature sign_text(std::string_view text) const { return current_->sign(text); }
  bool has_old() const { return old_.has_value(); }

  // The record is durable on return; only then may the note be published.
  Status remember(const Checkpoint& checkpoint, const std::string& note);

  Status prepare_next(const std::string& name);
  Status adopt_next();
  Status drop_next();
  Status forget_old();

 private:
  explicit Keyring(std::string folder) : folder_(std::move(folder)) {}
  Status read();
  Result<std::optional<NoteSigner>> read_signer(const std::string& name) const;
  std::string path(std::string_view name) const { return folder_ + "/" + std::string(name); }

  std::string folder_;
  std::optional<NoteSigner> current_, old_, next_;
  std::vector<VerifierKey> verifiers_;
  std::optional<LastSigned> last_signed_;
};

}  // namespace muniment::audit
