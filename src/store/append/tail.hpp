// Holds the newest events in memory, in order of seq, so that followers and subscriptions need not query Postgres. Its
// size in bytes is bounded; a reader that is further behind reads the table first.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "events/event.hpp"

namespace muniment::store {

using EventPtr = std::shared_ptr<const events::Event>;

class Tail {
 public:
  explicit Tail(std::size_t bytes_max = 16u << 20) : bytes_max_(bytes_max) {}

  // Returns up to `limit` events from `from_seq` on; empty if no newer event is committed. Returns nullopt if
  // `from_seq` is older than the oldest event in memory; then read the table.
  std::optional<std::vector<EventPtr>> read(std::int64_t from_seq, std::size_t limit) const;

  std::int64_t next_seq() const;  // size of the log up to the last commit

  // Waits until event `from_seq` is committed, the time is up, or `close`. Returns false if it is not committed.
  bool wait(std::int64_t from_seq, std::chrono::milliseconds at_most) const;
  // Waits like the other overload, but also returns when `called` is true. The thread that sets it calls `wake`.
  bool wait(std::int64_t from_seq, std::chrono::milliseconds at_most, const std::atomic<bool>& called) const;
  void wake() const;
  void close();
  bool closed() const;

  // Waits in short steps until the outcome of every event numbered up to this time is known. A query as of now usually
  // waits for one or two commits. Returns false at the deadline.
  bool decided(Time time, Deadline until) const;

  // Releases the bodies of these erased events. `seqs` is in ascending order.
  void erase(std::span<const std::int64_t> seqs);

  // Called on the append thread after each commit with the new size. It must not block.
  std::function<void(std::int64_t)> on_commit;

  // Functions for the append thread only.
  void start_at(std::int64_t next_seq);
  void publish(std::vector<EventPtr> batch);
  // Every event whose outcome is unknown has a recorded_at of at least `micros`. The append thread sets it before it
  // reads the clock for the next events, so that no reader finds nothing undecided in between.
  void undecided_from(std::int64_t micros) { undecided_from_.store(micros); }
  static constexpr std::int64_t nothing_undecided = INT64_MAX;

 private:
  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<EventPtr> events_;
  std::size_t bytes_ = 0;
  std::int64_t next_seq_ = 0;
  bool closed_ = false;
  std::atomic<std::int64_t> undecided_from_{nothing_undecided};
};

}  // namespace muniment::store
