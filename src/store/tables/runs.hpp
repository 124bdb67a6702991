// Holds the active runs in memory: the head of each run (position and hash of its chain, and its state) and the ids of
// its events. Only the append thread moves a head. Other threads read the view that is published under the run's mutex.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/json/json_tree.hpp"
#include "base/result.hpp"
#include "events/event.hpp"

namespace muniment::store {

enum class RunStatus : std::uint8_t { absent, open, ended, halted };

// Reason why a run was stopped; the first one is kept.
struct Halt {
  std::string code;    // SYSTEM_ERROR
  std::string reason;  // "artifact://r1/… missing"
  std::string pointer;
  Time at;
  std::int64_t seq = -1;  // -1: not in the log yet
};

// The published view of a run, for every thread.
struct RunView {
  RunStatus status = RunStatus::absent;
  std::string owner;  // the actor that started it
  events::Origin origin = events::Origin::reported;
  std::string parent;  // run_id, or empty
  std::optional<Halt> halt;
  std::int64_t run_no = -1;
  std::int64_t first_seq = -1;
};

// Applies an event to the view of its run. Only run.started, run.ended, run.halted and run.resumed change it.
void apply_to_view(RunView& view, const events::Event& event);

// A set of 64-bit fingerprints of a run's ids or contents. It can answer "certainly new" without a query.
class Fingerprints {
 public:
  bool maybe_has(std::uint64_t fingerprint) const;  // 0: always false
  void add(std::uint64_t fingerprint);
  std::size_t size() const { return count_; }

 private:
  void grow();
  std::vector<std::uint64_t> slots_;  // open addressing; 0 is an empty slot
  std::size_t count_ = 0;
};

std::uint64_t fingerprint(const Uuid& id);
std::uint64_t fingerprint(std::string_view name);
std::uint64_t fingerprint(std::string_view step_id, const Hash& bytes);  // fingerprint of an artifact

// Records, by fingerprint, the last position at which an item was numbered and which an earlier query could not return.
// Bounded: entries below `decided` are dropped, and a caller that queried before that position must query again.
class LastNumbered {
 public:
  explicit LastNumbered(std::size_t things_max) : things_max_(things_max) {}
  void add(std::uint64_t thing, std::int64_t position, std::int64_t decided);
  // Returns whether the item may have been numbered in [asked_at, next). Positions from `next` on were undone.
  bool any_since(std::uint64_t thing, std::int64_t asked_at, std::int64_t next) const;

 private:
  const std::size_t things_max_;
  std::unordered_map<std::uint64_t, std::int64_t> last_;
  std::int64_t forgotten_below_ = 0;
};

class Run {
 public:
  explicit Run(std::string id) : run_id(std::move(id)) {}
  const std::string run_id;
  std::int16_t closed_log = 0;  // number of the closed log that holds the run; nothing can be appended to it

  RunView view() const;
  void publish(RunView view);
  // Halts the run (fail-stop) before its halt is in the log, because Postgres is unavailable. The halt journal appends
  // it later. From now on the appender refuses the same events as for a halted run. The first reason is kept.
  void fail_stop(Halt halt);
  bool fail_stopped() const { return fail_stopped_.load(std::memory_order_acquire); }
  // Returns whether the step may hold these bytes as an artifact. If not, no query is needed.
  bool maybe_stored(std::string_view step_id, const Hash& hash) const;
  void stored(std::string_view step_id, const Hash& hash);  // call after the commit
  void begins();                                            // call for a new run, which has stored nothing yet

  std::int64_t next_run_seq() const { return next_run_seq_.load(std::memory_order_acquire); }

  // Members for the append thread only, and for the loader before it publishes the run.
  struct Head {
    std::int64_t run_no = -1;
    std::int64_t run_seq = 0;  // run_seq of the next event
    Hash run_hash{};           // hash of the last event; zeros before the first
    RunStatus status = RunStatus::absent;
    std::int64_t patched_run_seq = -1;  // of the newest state.patched that was numbered since the run was loaded
    std::shared_ptr<const json::Tree> working{};  // the working state after it, until it is committed
  };
  Head head;
  Fingerprints seen;                      // event ids
  std::int64_t ids_complete_from = 0;     // `seen` covers the events from this run_seq on; set when loaded
  LastNumbered numbered_contents{1'024};  // numbered artifacts, by run_seq
  LastNumbered numbered_names{65'536};    // names whose change returns requests for retry, by seq
  void committed(std::int64_t next) { next_run_seq_.store(next, std::memory_order_release); }

 private:
  mutable std::mutex mutex_;
  RunView view_;
  Fingerprints contents_;        // fingerprints of its artifacts, with their steps
  bool contents_known_ = false;  // contents_ covers all artifacts
  std::atomic<std::int64_t> next_run_seq_{0};
  std::atomic<bool> fail_stopped_{false};  // view_.halt is not in the log yet: its seq is -1
};

// Returns the error for an append to a halted run: run_halted, with the reason and the remedy. For an ended run:
// conflict.
Error halted_error(const Run& run);
Error ended_error(const Run& run);
// Returns the error for a run in a log that a restore closed: conflict.
Error closed_error(const Run& run);

// Finds and caches runs. Bounded: a run without other references may be dropped and loaded again.
class RunDirectory {
 public:
  std::shared_ptr<Run> find(std::string_view run_id) const;  // nullptr: not in memory
  // Inserts `run` unless a run with its id exists. Returns the run in the directory.
  std::shared_ptr<Run> insert(std::shared_ptr<Run> run);
  // Finds a run like `find`, but calls `load` if it is not in memory and inserts the result; nullptr if there is no
  // such run. Only one thread at a time loads a run, because a head that was read before another thread appended to the
  // run must not be inserted afterwards.
  Result<std::shared_ptr<Run>> find_or_load(std::string_view run_id,
                                            const std::function<Result<std::shared_ptr<Run>>()>& load);
  std::size_t size() const;
  // Drops runs without other references whose start is below `decided_seq`, until at most `keep` remain.
  void trim(std::size_t keep, std::int64_t decided_seq);

 private:
  struct Hasher {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  mutable std::mutex mutex_;
  std::array<std::mutex, 16> loading_;  // index: the hash of the run's id
  std::unordered_map<std::string, std::shared_ptr<Run>, Hasher, std::equal_to<>> runs_;
};

}  // namespace muniment::store
