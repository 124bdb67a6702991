// Holds the snapshotter's data about active runs, with the locks that guard it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "events/state.hpp"
#include "snapshot/snapshotter.hpp"
#include "store/files/artifact_files.hpp"

namespace muniment::snapshot {

// Schedule of a run's next snapshot, and its last one.
struct Pace {
  bool known = false;        // `last` and `newest_row` were looked up
  std::int64_t changes = 0;  // number of changes since the last snapshot
  std::optional<Monotonic> due;
  std::optional<TakenSnapshot> last;       // last snapshot in the log
  std::optional<std::int64_t> newest_row;  // seq of the newest row, whether or not its snapshot is valid
  bool in_flight = false;                  // a submitted snapshot is unanswered
  bool in_doubt = false;                   // unknown whether the last snapshot is stored; look it up
  std::uint64_t answered = 0;              // number of answers
  std::uint64_t used = 0;                  // sequence number of the last use of the state
  std::size_t state_bytes = 0;             // estimated size of the state in memory; 0: none
};

struct LiveRun {
  LiveRun(std::int64_t no, std::string id) : run_no(no), run_id(std::move(id)) {}
  const std::int64_t run_no;
  const std::string run_id;

  // Held while events are applied or read, which may take as long as a query. Lock it before LiveRuns::mutex, never
  // after.
  std::mutex mutex;
  std::optional<events::State> state;
  std::int64_t through_seq = -1;  // `state` includes all events of the run up to this one
  // Number of events that changed `state` since the follower last counted them. A request may apply events before the
  // follower does; they are counted here, because otherwise the snapshot of a busy run would never be due.
  std::int64_t uncounted = 0;

  Pace pace;  // guarded by LiveRuns::mutex
};

// A file whose snapshot was answered. Either its staging name or both names are removed.
struct AnsweredFile {
  store::StoredFile file;
  bool committed = false;
};

// Shared with the tickets, which may outlive the snapshotter. Hold the mutex only briefly.
struct LiveRuns {
  std::mutex mutex;
  std::condition_variable snapshot_answered;                        // a snapshot was answered
  std::unordered_map<std::int64_t, std::shared_ptr<LiveRun>> runs;  // by run_no
  std::set<std::pair<Monotonic, std::int64_t>> due;                 // the values of pace.due, in order
  std::vector<std::pair<std::int64_t, std::string_view>> urgent;    // run_no and reason
  std::vector<AnsweredFile> files;
  std::size_t in_flight = 0;
  std::uint64_t erasures = 0;  // number of erasures in any run; each releases the runs here
  std::uint64_t turn = 0;
  std::size_t state_bytes = 0;

  // Call the following with `mutex` held.
  std::shared_ptr<LiveRun> find_or_add(std::int64_t run_no, std::string_view run_id);
  void set_due(LiveRun& run, std::optional<Monotonic> when);
  void set_state_bytes(LiveRun& run, std::size_t bytes);
  // Releases the least recently used states until at most `bytes_max` remain, and runs that have neither a state nor a
  // due snapshot.
  void trim(std::size_t bytes_max);
};

// The append of a snapshot of `state`. A state that is too large for the table is first stored as an artifact. Errors:
// over_budget, system_error.
struct BuiltSnapshot {
  TakenSnapshot taken;
  store::AppendRequest request;
  std::optional<store::StoredFile> file;
};
Result<BuiltSnapshot> build_snapshot(const events::State& state, const std::shared_ptr<store::Run>& run,
                                     std::string_view reason, std::string_view actor, Clock& clock,
                                     store::ArtifactFiles& files);

// Makes a ticket for a snapshot that the pace of its run waits for. If it was not appended, `changes` are restored, and
// it is due again at `retry_at`.
std::shared_ptr<Ticket> make_ticket(std::shared_ptr<LiveRuns> live, std::shared_ptr<LiveRun> run, BuiltSnapshot built,
                                    std::int64_t changes, Monotonic retry_at);
// Makes a ticket for a snapshot that only an erasure or the next snapshot waits for.
std::shared_ptr<Ticket> make_file_ticket(std::shared_ptr<LiveRuns> live, std::shared_ptr<LiveRun> run,
                                         std::optional<store::StoredFile> file);

}  // namespace muniment::snapshot
