// The newest events, in memory, in order of seq: what followers and subscriptions read instead of
// asking Postgres again. Bounded by bytes; who is further behind reads the table first.
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

  // Up to `limit` events from `from_seq` on. nullopt: `from_seq` is older than what is held (read
  // the table). Empty: nothing newer has been committed.
  std::optional<std::vector<EventPtr>> read(std::int64_t from_seq, std::size_t limit) const;

  std::int64_t next_seq() const;  // the size of the log, as far as committed

  // Waits until an event `from_seq` is committed, the time is up, or `close`. False: it is not.
  bool wait(std::int64_t from_seq, std::chrono::milliseconds at_most) const;
  // The same, and also until `called` is true; who sets it calls `wake`.
  bool wait(std::int64_t from_seq, std::chrono::milliseconds at_most, const std::atomic<bool>& called) const;
  void wake() const;
  void close();
  bool closed() const;

  // Whether it is known of every event that was numbered up to this time whether it is in the log. Waits for that, in
  // short steps: whoever asks for what has just passed meets a commit or two.
  bool settled(Time time, Deadline until) const;

  // Lets go of the bodies of these events, in order: they were erased.
  void erase(std::span<const std::int64_t> seqs);

  // Called on the append thread after each commit with the new size; must not block.
  std::function<void(std::int64_t)> on_commit;

  // The append thread's.
  void start_at(std::int64_t next_seq);
  void publish(std::vector<EventPtr> batch);
  // Of what is numbered and may or may not come to be in the log, nothing is recorded earlier. Told before the clock is
  // read for what is numbered next, so that nobody finds nothing unsettled in between.
  void unsettled_from(std::int64_t micros) { unsettled_from_.store(micros); }
  static constexpr std::int64_t nothing_unsettled = INT64_MAX;

 private:
  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<EventPtr> events_;
  std::size_t bytes_ = 0;
  std::int64_t next_seq_ = 0;
  bool closed_ = false;
  std::atomic<std::int64_t> unsettled_from_{nothing_unsettled};
};

}  // namespace muniment::store
