// Snapshots against the events: every run that has some is read once more, by run, and folded; at
// each snapshot the fold must give its state. One state a thread is in memory, however long the log.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/result.hpp"
#include "verify/files/artifact_root.hpp"
#include "verify/finding.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/shared_snapshot.hpp"
#include "verify/state/run_folder.hpp"

namespace muniment::verify {

struct SnapshotWork {
  SharedSnapshot& snapshot;
  const Log& log;
  const ArtifactRoot& root;
  const std::string& archive;             // folder of the bodies of archived partitions
  const std::set<std::string>& redacted;  // artifact_ids that were erased
  Findings& findings;
};

Status check_snapshots(const SnapshotWork& work, unsigned jobs, SnapshotCounts& counts);

}  // namespace muniment::verify
