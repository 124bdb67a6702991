// Writes a run bundle (docs/format.md, Run bundles) from what the daemon answers. Memory does not
// grow with the run but for its artifacts' names: rows go through temporary files, artifacts from the
// socket straight into the archive. muniment-verify reads it before it takes its name: what would not
// verify is not exported.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "cli/connect/client.hpp"

namespace muniment::cli {

struct BundleOrder {
  std::string run_id;
  std::string path;        // of the bundle; replaced whole, or left as it is
  std::string checkpoint;  // a note of this log to prove the run against; empty: the newest
};

struct ExportedBundle {
  std::string origin;
  std::int64_t size = 0;  // of the checkpoint
  bool is_signed = false;
  bool signature_holds = false;  // by a key that the log names
  std::int64_t events = 0;
  std::int64_t artifacts = 0;
  std::int64_t erased = 0;  // artifacts
  std::int64_t bundle_bytes = 0;
};

// Errors: those of the daemon; corrupt when an artifact is not what its event says, or the bundle
// does not verify; invalid_argument for a checkpoint of another log, or from before the run; unavailable
// when muniment-verify cannot be run.
Result<ExportedBundle> export_bundle(Client& client, const BundleOrder& order);

}  // namespace muniment::cli
