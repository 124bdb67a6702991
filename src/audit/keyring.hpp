// The keys that sign a log, <data>/keys/ (docs/format.md, Checkpoints): outside the database, so
// that who can change the log cannot sign it. A new key becomes ours in steps, each of which a
// crash may end: written as log.key.next, announced by key.rotated, then renamed to log.key; the
// old one stays as log.key.old until a checkpoint that both signed is out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/crypto/signed_note.hpp"
#include "base/result.hpp"

namespace muniment::audit {

// What was signed last. Never sign what does not follow from it.
struct LastSigned {
  Checkpoint checkpoint;
  std::string note;
};

class Keyring {
 public:
  // `folder` is made (0700) when it is missing. Errors: denied when others may read a private key;
  // corrupt when a file is not what it should be.
  static Result<Keyring> open(const std::string& folder);

  bool can_sign() const { return current_.has_value(); }
  const std::vector<VerifierKey>& verifiers() const { return verifiers_; }  // the oldest first
  const std::optional<LastSigned>& last_signed() const { return last_signed_; }
  // Whether a key of ours made it: a private one that is here, or, where there is none, one that was published.
  bool signed_last() const;
  // A key was made and maybe announced: only the log knows whether it is ours.
  const std::optional<NoteSigner>& next() const { return next_; }

  // The old keys sign too, until `forget_old`.
  Note sign(const Checkpoint& checkpoint) const;
  bool has_old() const { return old_.has_value(); }

  // Durable when it returns: only then may the note leave.
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
