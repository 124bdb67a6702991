// Follows the log and takes snapshots: every N events of a run, a few seconds after a run began to change, at its end,
// on request, and when the daemon stops. It holds the states of active runs, so that a snapshot needs no reads and
// patches are checked against the current state.
//
// Appends never wait for it: it runs on its own thread, behind the log, and submits its snapshots like any other
// client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "snapshot/rehydrate.hpp"
#include "store/append/appender.hpp"
#include "store/append/tail.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/reader.hpp"
#include "store/tables/runs.hpp"

namespace muniment::snapshot {

struct SnapshotterOptions {
  store::LogPlace place;
  std::int64_t events_between = 500;
  std::int64_t seconds_between = 60;
  std::size_t states_bytes_max = 16u << 20;  // estimated size of the states in memory
};

struct TakenSnapshot {
  std::int64_t seq = -1;
  std::int64_t run_seq = -1;
  Hash state_hash{};
  std::int64_t size_bytes = 0;
  std::optional<Uuid> artifact_id;
};

// Receives the outcome of a snapshot's append. If it is destroyed without a call, the outcome is unknown.
class Ticket {
 public:
  virtual ~Ticket() = default;
  virtual void committed() = 0;
  virtual void refused() = 0;
};

// A snapshot to append. Without a request it is already in the log.
struct Taking {
  TakenSnapshot snapshot;
  std::optional<store::AppendRequest> request;
  std::shared_ptr<Ticket> ticket;
};

// While it exists, no snapshot of the run is taken and the state in memory is not used.
class Hold {
 public:
  virtual ~Hold() = default;
  // Discards the state in memory, so that the next one is read from the log.
  virtual void forget() = 0;
};

class Snapshotter {
 public:
  Snapshotter(SnapshotterOptions options, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
              store::Tail& tail, store::ArtifactFiles& files);
  ~Snapshotter();  // stops as `stop` does

  // Starts to follow at the position of the follower "snapshot", which is stored at most once a second.
  void start();

  // Returns a snapshot of the run's current state, including every acknowledged event. Blocks on `reader`: call it on a
  // worker. Errors: as `rehydrate`; unavailable if another snapshot of the same state is still being appended at
  // `deadline`.
  Result<Taking> take(store::Reader& reader, const std::shared_ptr<store::Run>& run, std::string_view reason,
                      std::string_view actor, Deadline deadline);

  // Calls snapshot::rehydrate for a state that may be passed to `store`.
  Result<Rehydrated> rehydrate(store::Reader& reader, std::int64_t run_no, std::optional<std::int64_t> asof_seq);

  // Stores a rehydrated state, current or past, whose bytes are needed as an artifact: returns the snapshot it came
  // from, or one to append, for which erasures wait. nullopt: rehydrate again, because something was erased or a
  // snapshot of the run was stored in the meantime. Errors: unavailable if another snapshot is still being appended at
  // `deadline`.
  Result<std::optional<Taking>> store(const Rehydrated& had, const std::shared_ptr<store::Run>& run,
                                      std::string_view reason, std::string_view actor, Deadline deadline);

  // Checks whether these state.patched bodies apply, one after the other, to the run's current state. For admission, on
  // a worker. Pass the result to the appender, which checks them again if the run is patched meanwhile. Errors:
  // invalid_argument, too_large, conflict, and not_found for a missing spilled patch.
  Result<store::CheckedPatches> check_patches(store::Reader& reader, const store::Run& run,
                                              const std::vector<std::string_view>& bodies);

  // Blocks snapshots of the run for an erasure. Errors: unavailable if a snapshot of the run is still being appended at
  // `deadline`.
  Result<std::unique_ptr<Hold>> hold(std::int64_t run_no, std::string_view run_id, Deadline deadline);

  // Takes the snapshots that are due at a stop and waits until they are stored, for at most `at_most`.
  void flush(std::chrono::milliseconds at_most);
  void stop();

  std::string problem() const;    // reason why it is blocked; empty: it is not
  std::int64_t position() const;  // events below this seq were followed

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::snapshot
