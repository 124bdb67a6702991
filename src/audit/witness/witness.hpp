// A witness (C2SP tlog-witness): another account, on another machine if possible, that remembers the
// newest checkpoint of a log and cosigns a newer one only when it proves that the log grew from
// there. What it cosigned cannot be taken back by whoever runs the log.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/result.hpp"

namespace muniment::audit {

struct WitnessAnswer {
  int status = 0;  // as HTTP has it
  std::string text;
  bool is_size = false;  // 409: text is the size that is held (text/x.tlog.size)
};

// The state lies in one folder: witness.key (0600), witness.pub, and <sha256 of the origin>/checkpoint
// for every log.
class Witness {
 public:
  // Makes the folder (0700) and a key called `name` where there is none. `logs`: the keys that are
  // trusted, each for the origin that is its name.
  static Result<std::unique_ptr<Witness>> open(const std::string& folder, const std::string& name,
                                               std::vector<VerifierKey> logs, Clock& clock);

  const VerifierKey& verifier() const { return signer_.verifier(); }

  // POST /add-checkpoint. From any thread; one at a time is served.
  WitnessAnswer add_checkpoint(std::string_view body);
  // GET /<sha256 of the origin>/checkpoint.
  WitnessAnswer checkpoint(std::string_view origin_hash) const;

 private:
  Witness(std::string folder, NoteSigner signer, std::vector<VerifierKey> logs, Clock& clock)
      : folder_(std::move(folder)), signer_(std::move(signer)), logs_(std::move(logs)), clock_(clock) {}
  Result<std::optional<Checkpoint>> held(const std::string& origin) const;
  Status keep(const Checkpoint& checkpoint, const std::string& note);

  const std::string folder_;
  const NoteSigner signer_;
  const std::vector<VerifierKey> logs_;
  Clock& clock_;
  mutable std::mutex mutex_;
};

// "old <size>", the proof's hashes in base64, an empty line, the checkpoint.
std::string add_checkpoint_request(std::int64_t old_size, const std::vector<Hash>& proof, std::string_view note);

}  // namespace muniment::audit
