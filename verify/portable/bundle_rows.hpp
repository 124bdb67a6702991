// Converts the lines of a bundle to the events and rows that the database would hold.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "verify/log/hashing.hpp"
#include "verify/portable/bundle_archive.hpp"
#include "verify/state/run_folder.hpp"
#include "verify/tables/tables.hpp"

namespace muniment::verify {

// A line of events.jsonl, with the bytes that its view points into.
struct BundleEvent {
  EventView view;
  std::string type, step_id, actor, event_id, body_hash, salt, body, run_hash;
};

// Errors: corrupt if the line is not an event as defined in docs/format.md.
Result<std::unique_ptr<BundleEvent>> parse_bundle_event(std::string_view line);

RowSources bundle_rows(const BundleArchive& bundle);

// Expected properties of a file, from its artifact's row.
struct ArtifactClaim {
  std::int64_t seq = 0;
  std::string hash;  // hexadecimal
  std::int64_t size_bytes = 0;
};
Result<std::map<std::string, ArtifactClaim>> artifact_claims(const BundleArchive& bundle);  // by artifact_id

// Returns the snapshots in the order of seq. `artifacts` supplies the hash of a state that is stored as a file.
Result<std::unique_ptr<SnapshotSource>> bundle_snapshots(const BundleArchive& bundle,
                                                         const std::map<std::string, ArtifactClaim>& artifacts);

}  // namespace muniment::verify
