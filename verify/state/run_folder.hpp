// Compares snapshots with the fold of their runs' events, from a database or a bundle. Events arrive run by run,
// snapshots in the same order; at each snapshot the fold must yield its state.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/scan.hpp"
#include "verify/state/fold.hpp"

namespace muniment::verify {

struct SnapshotCounts {
  std::int64_t folded = 0;
  std::int64_t erased = 0;
  std::int64_t not_folded = 0;  // an artifact or an archived body that the fold needs is missing or damaged
};

struct TakenSnapshot {
  std::int64_t run_no = 0, seq = 0, run_seq = 0, event_seq = 0, size_bytes = 0;
  std::optional<std::string> salt, state;
  std::string hash, state_hash;              // 32 bytes
  std::optional<std::string> artifact_hash;  // hexadecimal; hash of the artifact that holds the state
  std::string artifact_id;                   // its id; empty: the row holds the state
};

class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  virtual Result<std::optional<TakenSnapshot>> next() = 0;  // ordered by run_no, then seq; nullopt: no more
};

class PatchSource {
 public:
  virtual ~PatchSource() = default;
  // Returns the content of a patch that was too large for its event; nullopt: the artifact is missing or damaged, which
  // the check of the files reports. A patch over the size limit may be returned truncated, because it is refused for
  // its size alone.
  virtual Result<std::optional<std::string>> bytes(const std::string& artifact_id) = 0;
};

inline constexpr std::int64_t spilled_patch_bytes_max = 4'194'304;

class RunFolder {
 public:
  RunFolder(const Log& log, const std::set<std::string>& redacted, SnapshotSource& snapshots, PatchSource& patches,
            Findings& findings, SnapshotCounts& counts)
      : log_(log),
        redacted_(redacted),
        snapshots_(snapshots),
        patches_(patches),
        findings_(findings),
        counts_(counts) {}

  Status start() { return advance(); }
  Status take(std::int64_t run_no, const FoldEvent& event);
  Status finish();

 private:
  Status advance();
  Status pass_over();
  Status apply(const FoldEvent& event);
  void compare();
  void check_inline_hashes();
  void found(Check check, std::string expected, std::string actual);

  const Log& log_;
  const std::set<std::string>& redacted_;  // artifact_ids that were erased
  SnapshotSource& snapshots_;
  PatchSource& patches_;
  Findings& findings_;
  SnapshotCounts& counts_;
  std::optional<TakenSnapshot> next_;
  std::optional<Fold> fold_;
  std::int64_t run_no_ = -1;
  bool foldable_ = true;
  bool erased_ = false;  // a part of the state was erased
};

}  // namespace muniment::verify
