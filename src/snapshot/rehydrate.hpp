// A run's state, had back: the newest good snapshot at or before a position, and the events after
// it. What is read is bounded by the distance between snapshots, never by the length of the run.
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

// A snapshot that could not be used, and why.
struct Skipped {
  std::int64_t seq = -1;
  std::string reason;
};

struct Rehydrated {
  events::State state;
  std::int64_t through_seq = -1;   // every event of the run up to this one was looked at
  std::int64_t snapshot_seq = -1;  // -1: from the run's first event
  std::int64_t events_applied = 0;
  std::optional<store::SnapshotRow> snapshot;  // the one that was used, without its bytes
  std::optional<std::int64_t> newest_row;      // the seq of the newest snapshot's row, good or not
  std::vector<Skipped> skipped;
  std::uint64_t erasures = 0;  // how many this daemon had carried out before it was read (Snapshotter::rehydrate)
};

// The state after the run's events up to `asof_seq`, inclusive (all of them without one). Errors:
// unavailable; corrupt, with the pointer, when a spilled patch is missing or damaged: then the
// state cannot be had, and is not guessed.
Result<Rehydrated> rehydrate(store::Reader& reader, store::ArtifactFiles& files, std::int64_t run_no,
                             std::optional<std::int64_t> asof_seq = std::nullopt);

// Applies the events of the run that come after `through_seq` and, in the run, after the state's
// position, up to `asof_seq`; moves `through_seq` to the last one looked at. Answers how many changed
// the state. Errors as `rehydrate`.
Result<std::int64_t> apply_events_after(store::Reader& reader, store::ArtifactFiles& files, std::int64_t run_no,
                                        std::optional<std::int64_t> asof_seq, events::State& state,
                                        std::int64_t& through_seq);

// The bytes of a snapshot, held against its event and its hash. Errors: corrupt, saying what is
// wrong; not_found when the bytes were erased; unavailable.
Result<std::string> read_snapshot(store::Reader& reader, store::ArtifactFiles& files, const store::SnapshotRow& row);

// Applies one event; reads its patch from an artifact where it was spilled. Errors as `rehydrate`.
Status apply_event(events::State& state, const events::Event& event, store::Reader& reader,
                   store::ArtifactFiles& files);

// The text of a spilled patch. Errors: corrupt, with the pointer.
Result<std::string> read_spilled_patch(std::string_view run_id, std::string_view artifact_id, store::Reader& reader,
                                       store::ArtifactFiles& files);

}  // namespace muniment::snapshot
