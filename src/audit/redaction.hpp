// Erases an event's body, an artifact's bytes, or a whole run, with every known copy.
//
// The plan is written to a journal before anything changes; from then on this daemon or the next one carries it out:
// (1) event.redacted and artifact.redacted are appended, (2) one transaction removes the copies from the database, (3)
// the archive and the memory drop them, (4) the files are unlinked, (5) a new snapshot is taken and the journal
// removed. Every step is repeatable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "snapshot/snapshotter.hpp"
#include "store/append/appender.hpp"
#include "store/append/tail.hpp"
#include "store/files/artifact_files.hpp"
#include "store/files/body_archive.hpp"
#include "store/logs/erasure.hpp"
#include "store/read/reader.hpp"
#include "store/tables/runs.hpp"

namespace muniment::audit {

struct RedactionOptions {
  std::string folder;  // <data>/redactions
  store::LogPlace place;
};

struct RedactionRequest {
  store::ErasureTarget target;
  std::string reason;
  std::string legal_basis;  // empty: none was given
  std::string by;           // the requesting actor
  // Called before anything is written; its error cancels the erasure. Empty: always begins.
  std::function<Status()> begin;
};

struct Redacted {
  store::ErasurePlan plan;
  std::int64_t seq = -1;                     // its first announcement
  std::optional<std::int64_t> snapshot_seq;  // position of the new snapshot; none for the run _log
};

// Warns of erasures that were requested in a log which is closed by now after a restore: they cannot be announced
// there, so their content stays. Logged at each start. `folder` holds the journals.
void warn_of_lost_erasures(const std::string& folder, std::int16_t log_no);

class Redactor {
 public:
  Redactor(RedactionOptions options, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
           store::Tail& tail, store::ArtifactFiles& files, store::BodyArchive& archive,
           snapshot::Snapshotter& snapshots);
  ~Redactor();

  // Carries out the erasures that an earlier daemon began. Called at the start, before snapshots are taken and anything
  // is served. Errors: corrupt for a journal that cannot be read; unavailable.
  Status finish_pending();

  // Returns what would be erased. Errors: conflict for a run that must be kept.
  Result<store::ErasurePlan> plan(store::Reader& reader, const store::ErasureTarget& target);

  // Carries the erasure out. Blocks; call it on a worker. Errors: those of `plan`; unavailable if Postgres does not
  // answer, with outcome "unknown" if the erasure had begun: then the next start or request completes it.
  Result<Redacted> redact(store::Reader& reader, const RedactionRequest& request, Deadline deadline);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::audit
