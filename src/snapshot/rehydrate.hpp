// Restores a run's state from the newest valid snapshot at or before a position and the events after it. The amount of
// data read is bounded by the distance between snapshots, not by the length of the run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "events/state.hpp"
#include "store/append/rows.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/reader.hpp"

namespace muniment::snapshot {

// A snapshot that could not be used, and the reason.
struct Skipped {
  std::int64_t seq = -1;
  std::string reason;
};

struct Rehydrated {
  events::State state;
  std::int64_t through_seq = -1;   // every event of the run up to this one was processed
  std::int64_t snapshot_seq = -1;  // -1: from the run's first event
  std::int64_t events_applied = 0;
  std::optional<store::SnapshotRow> snapshot;  // the snapshot that was used, without its bytes
  std::optional<std::int64_t> newest_row;      // seq of the newest snapshot's row, valid or not
  std::vector<Skipped> skipped;
  std::uint64_t erasures = 0;  // number of erasures before the state was read (Snapshotter::rehydrate)
};

// Returns the state after the run's events up to `asof_seq`, inclusive (all events without it). Errors: unavailable;
// corrupt, with the pointer, if a spilled patch is missing or damaged, because the state then cannot be determined.
Result<Rehydrated> rehydrate(store::Reader& reader, store::ArtifactFiles& files, std::int64_t run_no,
                             std::optional<std::int64_t> asof_seq = std::nullopt);

// Applies the run's events after `through_seq` and after the state's position, up to `asof_seq`, and moves
// `through_seq` to the last processed one. Returns the number of events that changed the state. Errors: as `rehydrate`.
Result<std::int64_t> apply_events_after(store::Reader& reader, store::ArtifactFiles& files, std::int64_t run_no,
                                        std::optional<std::int64_t> asof_seq, events::State& state,
                                        std::int64_t& through_seq);

// Returns the bytes of a snapshot, checked against its event and its hash. Errors: corrupt, with the deviation;
// not_found if the bytes were erased; unavailable.
Result<std::string> read_snapshot(store::Reader& reader, store::ArtifactFiles& files, const store::SnapshotRow& row);

// Applies one event and reads its patch from an artifact if it was spilled. Errors: as `rehydrate`.
Status apply_event(events::State& state, const events::Event& event, store::Reader& reader,
                   store::ArtifactFiles& files);

// Returns the text of a spilled patch. Errors: corrupt, with the pointer.
Result<std::string> read_spilled_patch(std::string_view run_id, std::string_view artifact_id, store::Reader& reader,
                                       store::ArtifactFiles& files);

}  // namespace muniment::snapshot
