// The runs that the daemon holds in memory: each one's head (where its chain stands, what state it
// is in) and the ids it has seen. The append thread alone moves a head; everybody else reads what
// is published under the run's mutex.
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
#include "base/result.hpp"
#include "events/event.hpp"

namespace muniment::store {

enum class RunStatus : std::uint8_t { absent, open, ended, halted };

// The reason for which a run was stopped; the first one wins.
struct Halt {
  std::string code;    // SYSTEM_ERROR
  std::string reason;  // "artifact://r1/… missing"
  std::string pointer;
  Time at;
  std::int64_t seq = -1;  // -1: not in the log yet
};

// What every thread may know of a run.
struct RunView {
  RunStatus status = RunStatus::absent;
  std::string owner;  // the actor that started it
  events::Origin origin = events::Origin::reported;
  std::string parent;  // run_id, or empty
  std::optional<Halt> halt;
  std::int64_t run_no = -1;
  std::int64_t first_seq = -1;
};

// What an event of the run does to its view: run.started, run.ended, run.halted and run.resumed
// change it, the others do not.
void apply_to_view(RunView& view, const events::Event& event);

// What a run has, as 64-bit fingerprints: "surely new" without asking Postgres.
class Fingerprints {
 public:
  bool maybe_has(std::uint64_t fingerprint) const;  // of 0: never
  void add(std::uint64_t fingerprint);
  std::size_t size() const { return count_; }

 private:
  void grow();
  std::vector<std::uint64_t> slots_;  // open addressing; 0 is an empty slot
  std::size_t count_ = 0;
};

std::uint64_t fingerprint(const Uuid& id);
std::uint64_t fingerprint(std::string_view name);
std::uint64_t fingerprint(std::string_view step_id, const Hash& bytes);  // of an artifact

// Where things were numbered last, by their fingerprints: what Postgres could not yet tell who asked it before.
// Bounded: what lies below `settled` is forgotten, and then whoever asked before that asks again.
class LastNumbered {
 public:
  explicit LastNumbered(std::size_t things_max) : things_max_(things_max) {}
  void add(std::uint64_t thing, std::int64_t position, std::int64_t settled);
  // Maybe, at `asked_at` or behind it, but before `next`: a position from there on was taken back.
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
  std::int16_t closed_log = 0;  // of a log that the present one goes on from, its number: it takes nothing more

  RunView view() const;
  void publish(RunView view);
  // Stops the run before its halt is in the log, for when Postgres cannot take it (the halt journal
  // brings it there): from now on the appender refuses what a halted run refuses. First one wins.
  void latch(Halt halt);
  bool latched() const { return latched_.load(std::memory_order_acquire); }
  // May the step hold these bytes as an artifact? False: surely not, and Postgres need not be asked.
  bool maybe_stored(std::string_view step_id, const Hash& hash) const;
  void stored(std::string_view step_id, const Hash& hash);  // and committed
  void begins();                                            // nothing is stored yet

  std::int64_t next_run_seq() const { return next_run_seq_.load(std::memory_order_acquire); }

  // Below here: the append thread's, and the loader's before the run is handed out.
  struct Head {
    std::int64_t run_no = -1;
    std::int64_t run_seq = 0;  // of the next event
    Hash run_hash{};           // of the last one; zeros before the first
    RunStatus status = RunStatus::absent;
  };
  Head head;
  Fingerprints seen;                      // event ids
  std::int64_t ids_complete_from = 0;     // run_seq below which `seen` knows nothing; as it was loaded
  LastNumbered numbered_contents{1'024};  // its artifacts, by run_seq
  LastNumbered numbered_names{65'536};    // what requests name that are made again where it changed, by seq
  void committed(std::int64_t next) { next_run_seq_.store(next, std::memory_order_release); }

 private:
  mutable std::mutex mutex_;
  RunView view_;
  Fingerprints contents_;        // of its artifacts, with their steps
  bool contents_known_ = false;  // all of them
  std::atomic<std::int64_t> next_run_seq_{0};
  std::atomic<bool> latched_{false};  // view_.halt is not in the log yet: its seq is -1
};

// Why a halted run takes nothing more: run_halted, with the reason and the way out. Of an ended
// one: conflict.
Error halted_error(const Run& run);
Error ended_error(const Run& run);
// Of one in a log that was closed by a restore: conflict.
Error closed_error(const Run& run);

// Finds and keeps runs. Bounded: a run that nobody holds may be dropped and loaded again.
class RunDirectory {
 public:
  std::shared_ptr<Run> find(std::string_view run_id) const;  // nullptr: not in memory
  // Inserts `run` unless one with its id is there; returns the one that is.
  std::shared_ptr<Run> insert(std::shared_ptr<Run> run);
  // As `find`, and where the run is not in memory calls `load` (which may answer nullptr: there is
  // none) and inserts what it answers. One thread at a time loads a run: a head that was read
  // before another thread appended to the run must not be inserted after it.
  Result<std::shared_ptr<Run>> find_or_load(std::string_view run_id,
                                            const std::function<Result<std::shared_ptr<Run>>()>& load);
  std::size_t size() const;
  // Drops runs that nobody holds and whose start is below `settled_seq` until at most `keep` remain.
  void trim(std::size_t keep, std::int64_t settled_seq);

 private:
  struct Hasher {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  mutable std::mutex mutex_;
  std::array<std::mutex, 16> loading_;  // by the hash of the run's id
  std::unordered_map<std::string, std::shared_ptr<Run>, Hasher, std::equal_to<>> runs_;
};

}  // namespace muniment::store
