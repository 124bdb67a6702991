// Follows the log and takes snapshots: every N events of a run, some seconds after a run began to
// change, at its end, on request, and when the daemon stops. It keeps the states of the runs that
// are active, so that a snapshot costs no reading and a patch is checked against the present.
//
// Appends never wait for it: it runs on a thread of its own, behind the log, and submits its
// snapshots like any other client.
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
  std::size_t states_bytes_max = 16u << 20;  // of the states that are held, by estimate
};

struct TakenSnapshot {
  std::int64_t seq = -1;
  std::int64_t run_seq = -1;
  Hash state_hash{};
  std::int64_t size_bytes = 0;
  std::optional<Uuid> artifact_id;
};

// Says what became of a snapshot's append. Dropped without a word, its outcome is unknown.
class Ticket {
 public:
  virtual ~Ticket() = default;
  virtual void committed() = 0;
  virtual void refused() = 0;
};

// A snapshot to be appended by the caller; without a request it is in the log already.
struct Taking {
  TakenSnapshot snapshot;
  std::optional<store::AppendRequest> request;
  std::shared_ptr<Ticket> ticket;
};

// While it is held no snapshot of the run is taken, and nobody sees the state that is in memory.
class Hold {
 public:
  virtual ~Hold() = default;
  // Lets go of that state: the next one comes from the log.
  virtual void forget() = 0;
};

class Snapshotter {
 public:
  Snapshotter(SnapshotterOptions options, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
              store::Tail& tail, store::ArtifactFiles& files);
  ~Snapshotter();  // stops as by `stop`

  // Begins to follow where it stopped: the position of the follower "snapshot", which is kept at
  // most once a second.
  void start();

  // The state of the run as it is now, every acknowledged event included. Blocks on `reader`: call
  // it on a worker. Errors: as `rehydrate`; unavailable when another snapshot of the same state is
  // still being appended at `deadline`.
  Result<Taking> take(store::Reader& reader, const std::shared_ptr<store::Run>& run, std::string_view reason,
                      std::string_view actor, Deadline deadline);

  // As snapshot::rehydrate, of a state that `store` may be asked to keep.
  Result<Rehydrated> rehydrate(store::Reader& reader, std::int64_t run_no, std::optional<std::int64_t> asof_seq);

  // A snapshot of a state that was rehydrated, as of now or of then, where its bytes are wanted as an
  // artifact: the one it came from, or one to be appended, for which an erasure waits. nullopt: rehydrate
  // again, since something was erased or a snapshot of the run was stored in between. Errors: unavailable
  // when another snapshot is still being appended at `deadline`.
  Result<std::optional<Taking>> store(const Rehydrated& had, const std::shared_ptr<store::Run>& run,
                                      std::string_view reason, std::string_view actor, Deadline deadline);

  // Would these state.patched bodies apply, one after the other, to the run as it is now? For
  // admission, on a worker. The answer holds only if nothing else is appended in between; the fold
  // counts what does not apply all the same. Errors: invalid_argument, too_large, conflict, and
  // not_found for a spilled patch that is not there.
  Status check_patches(store::Reader& reader, const store::Run& run, const std::vector<std::string_view>& bodies);

  // For an erasure. Errors: unavailable when a snapshot of the run is still being appended at `deadline`.
  Result<std::unique_ptr<Hold>> hold(std::int64_t run_no, std::string_view run_id, Deadline deadline);

  // Takes the snapshots that are due at a stop and waits until they are in, for at most `at_most`.
  void flush(std::chrono::milliseconds at_most);
  void stop();

  std::string problem() const;    // why it does not get on; empty: it does
  std::int64_t position() const;  // every event below it was followed

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::snapshot
