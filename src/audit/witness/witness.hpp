// A witness (C2SP tlog-witness): it runs under another account, preferably on another machine, remembers the newest
// checkpoint of a log, and cosigns a newer one only with a proof that the log grew from there. The operator of the log
// cannot retract what it cosigned.
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
  int status = 0;  // HTTP status
  std::string text;
  bool is_size = false;  // 409: text is the size that the witness holds (text/x.tlog.size)
};

// Its state is one folder: witness.key (0600), witness.pub, and <sha256 of the origin>/checkpoint for every log.
class Witness {
 public:
  // Creates the folder (0700) and a key called `name` if there is none. `logs` are the trusted keys, each for the
  // origin that is its name.
  static Result<std::unique_ptr<Witness>> open(const std::string& folder, const std::string& name,
                                               std::vector<VerifierKey> logs, Clock& clock);

  const VerifierKey& verifier() const { return signer_.verifier(); }

  // POST /add-checkpoint. Any thread; serves one request at a time.
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

// Returns "old <size>", the proof's hashes in base64, an empty line, and the checkpoint.
std::string add_checkpoint_request(std::int64_t old_size, const std::vector<Hash>& proof, std::string_view note);

}  // namespace muniment::audit
