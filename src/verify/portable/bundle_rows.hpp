// The lines of a bundle as events and rows: the same that the database has, in the form in which a bundle holds them.
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

// Errors: corrupt for a line that is not an event as docs/format.md says.
Result<std::unique_ptr<BundleEvent>> parse_bundle_event(std::string_view line);

RowSources bundle_rows(const BundleArchive& bundle);

// What the artifacts' rows say of the files.
struct ArtifactClaim {
  std::int64_t seq = 0;
  std::string hash;  // hexadecimal
  std::int64_t size_bytes = 0;
};
Result<std::map<std::string, ArtifactClaim>> artifact_claims(const BundleArchive& bundle);  // by artifact_id

// The snapshots in the order of seq; `artifacts` gives the hash of a state that is a file.
Result<std::unique_ptr<SnapshotSource>> bundle_snapshots(const BundleArchive& bundle,
                                                         const std::map<std::string, ArtifactClaim>& artifacts);

}  // namespace muniment::verify
