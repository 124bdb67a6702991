// What the snapshotter holds of the runs that are active, and who may touch it.
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

// When a run's next snapshot is due, and which is its last.
struct Pace {
  bool known = false;        // `last` and `newest_row` were looked up
  std::int64_t changes = 0;  // since the last snapshot
  std::optional<Monotonic> due;
  std::optional<TakenSnapshot> last;       // in the log
  std::optional<std::int64_t> newest_row;  // the newest row's seq, of a good snapshot or not
  bool in_flight = false;                  // one was submitted and has not been answered
  bool in_doubt = false;                   // nobody knows whether the last one is in: look it up
  std::uint64_t answered = 0;              // how many were
  std::uint64_t used = 0;                  // when the state was last used, in turns
  std::size_t state_bytes = 0;             // of the state that is held, by estimate; 0: none
};

struct LiveRun {
  LiveRun(std::int64_t no, std::string id) : run_no(no), run_id(std::move(id)) {}
  const std::int64_t run_no;
  const std::string run_id;

  // Held while events are applied or read, which may take as long as a query. Taken before
  // LiveRuns::mutex, never after it.
  std::mutex mutex;
  std::optional<events::State> state;
  std::int64_t through_seq = -1;  // all events of the run up to here are in `state`
  // Events that changed `state` since the follower last looked. A request may apply them before the
  // follower meets them; whoever applies counts, or a busy run would never be due.
  std::int64_t uncounted = 0;

  Pace pace;  // LiveRuns::mutex guards it
};

// A file whose snapshot was answered: its staging name goes, or both names.
struct SettledFile {
  store::StoredFile file;
  bool committed = false;
};

// Shared with the tickets, which may outlive the snapshotter. The mutex is held only for moments.
struct LiveRuns {
  std::mutex mutex;
  std::condition_variable settled;                                  // a snapshot was answered
  std::unordered_map<std::int64_t, std::shared_ptr<LiveRun>> runs;  // by run_no
  std::set<std::pair<Monotonic, std::int64_t>> due;                 // what pace.due says, in order
  std::vector<std::pair<std::int64_t, std::string_view>> urgent;    // run_no and reason
  std::vector<SettledFile> files;
  std::size_t in_flight = 0;
  std::uint64_t erasures = 0;  // of any run: the runs here are let go of
  std::uint64_t turn = 0;
  std::size_t state_bytes = 0;

  // All below with `mutex` held.
  std::shared_ptr<LiveRun> find_or_add(std::int64_t run_no, std::string_view run_id);
  void set_due(LiveRun& run, std::optional<Monotonic> when);
  void set_state_bytes(LiveRun& run, std::size_t bytes);
  // Lets go of the states used longest ago until at most `bytes_max` remain, and of runs that have
  // neither a state nor anything to be taken.
  void trim(std::size_t bytes_max);
};

// The append of a snapshot of `state`; a state that is too large for the table is stored as an
// artifact first. Errors: over_budget, system_error.
struct BuiltSnapshot {
  TakenSnapshot taken;
  store::AppendRequest request;
  std::optional<store::StoredFile> file;
};
Result<BuiltSnapshot> build_snapshot(const events::State& state, const std::shared_ptr<store::Run>& run,
                                     std::string_view reason, std::string_view actor, Clock& clock,
                                     store::ArtifactFiles& files);

// For a snapshot whose run waits for it. `changes` come back when it was not appended, and it is due
// again at `retry_at`.
std::shared_ptr<Ticket> make_ticket(std::shared_ptr<LiveRuns> live, std::shared_ptr<LiveRun> run, BuiltSnapshot built,
                                    std::int64_t changes, Monotonic retry_at);
// For one that no pace waits for, but others do: an erasure, and the next snapshot.
std::shared_ptr<Ticket> make_file_ticket(std::shared_ptr<LiveRuns> live, std::shared_ptr<LiveRun> run,
                                         std::optional<store::StoredFile> file);

}  // namespace muniment::snapshot
