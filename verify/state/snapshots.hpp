// Compares snapshots with the events: reads every run with snapshots again and folds it; at each snapshot the fold must
// yield its state. Each thread holds one state in memory, regardless of the log's size.
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
