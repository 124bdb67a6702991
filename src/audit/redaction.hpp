// Erasure: an event's body, an artifact's bytes, or all of a run, with every copy that is known of.
//
// The plan is written to a journal of its own before anything changes; from then on it is carried
// out, by this daemon or by the next one: (1) event.redacted and artifact.redacted go into the log,
// (2) one transaction takes the copies out of the database, (3) the archive and the memory let go of
// them, (4) the files are unlinked, (5) a new snapshot is taken, and the journal goes. Each step may be done again.
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
  std::string legal_basis;        // empty: none was given
  std::string by;                 // the actor who asked
  std::function<Status()> begin;  // asked before anything is written: an error, and nothing is; empty: always
};

struct Redacted {
  store::ErasurePlan plan;
  std::int64_t seq = -1;                     // its first announcement
  std::optional<std::int64_t> snapshot_seq;  // of the new one; none for the run _log
};

// Erasures that were asked for in a log which was restored, or put back, and is closed by now: nobody can announce them
// there, and what they name stays. The daemon's log says so at each start. `folder`: its journals.
void warn_of_lost_erasures(const std::string& folder, std::int16_t log_no);

class Redactor {
 public:
  Redactor(RedactionOptions options, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
           store::Tail& tail, store::ArtifactFiles& files, store::BodyArchive& archive,
           snapshot::Snapshotter& snapshots);
  ~Redactor();

  // At start, before snapshots are taken and anything is served: carries out what a former daemon
  // began. Errors: corrupt for a journal that cannot be read; unavailable.
  Status finish_pending();

  // What would be erased, and why it may not be: conflict for a run that must be kept.
  Result<store::ErasurePlan> plan(store::Reader& reader, const store::ErasureTarget& target);

  // Carries it out. Blocks: call it on a worker. Errors as `plan`; unavailable when Postgres does not
  // answer, and then, once it was begun, outcome "unknown": the next start or request carries it out.
  Result<Redacted> redact(store::Reader& reader, const RedactionRequest& request, Deadline deadline);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::audit
