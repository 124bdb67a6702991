// Writes a run bundle (docs/format.md, Run bundles) from replies of the daemon. Memory grows only with the number of
// erased artifacts: rows pass through temporary files, artifacts from the socket directly to the archive.
// muniment-verify checks the bundle before it gets its name; a bundle that fails verification is not exported.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

struct BundleOrder {
  std::string run_id;
  std::string path;        // path of the bundle; replaced atomically or left unchanged
  std::string checkpoint;  // signed note of this log to prove the run against; empty: the newest
};

struct ExportedBundle {
  std::string origin;
  std::int64_t size = 0;  // size of the checkpoint
  bool is_signed = false;
  bool signature_holds = false;  // the signature is by a key that the log names
  std::int64_t events = 0;
  std::int64_t artifacts = 0;
  std::int64_t erased = 0;  // number of erased artifacts
  std::int64_t bundle_bytes = 0;
};

// Errors: those of the daemon; corrupt if an artifact does not match its event or the bundle fails verification;
// invalid_argument for a checkpoint of another log or from before the run; unavailable if muniment-verify cannot be
// run.
Result<ExportedBundle> export_bundle(Client& client, const BundleOrder& order);

}  // namespace muniment::cli
