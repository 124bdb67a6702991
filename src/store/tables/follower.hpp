// Implements a follower: a thread that reads the log by position and maintains derived tables. It commits its rows and
// its position in one transaction, so a crash repeats and skips nothing. When idle it sleeps until the next commit.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.hpp"
#include "base/process/worker_thread.hpp"
#include "base/result.hpp"
#include "store/append/rows.hpp"
#include "store/append/tail.hpp"
#include "store/read/corpus_rows.hpp"
#include "store/read/document_lives.hpp"
#include "store/read/reader.hpp"
#include "store/tables/report_rows.hpp"

namespace muniment::store {

// The rows derived from a batch of events. They replace rows with the same key.
struct FollowedRows {
  std::vector<RunRow> runs{};
  std::vector<PointerRow> pointers{};
  std::vector<CorpusChange> corpus{};  // in order, because one change may end what another began
  ReportRows report{};
  std::optional<std::int64_t> next_seq{};  // set if the batch was too large and was read only up to here
};

// Stores the position of the follower `name`, for a follower without tables.
Status keep_position(Connection& connection, std::int16_t log_no, std::string_view name, std::int64_t next_seq);

class Follower {
 public:
  struct Options {
    LogPlace place;
    // Pause between two batches. Under load, one commit of the follower then covers many commits of the log.
    std::chrono::milliseconds batch_pause{100};
    bool confirmed = false;  // holds the events that it reads from the table against the log, also the irrelevant ones
  };

  // `types` are the relevant events, as in EventFilter.
  Follower(std::string name, std::vector<std::string> types, Options options, const Tail& tail);
  virtual ~Follower();  // a derived class calls `stop` in its own destructor

  void start();
  // Processes all committed events and ends the thread. Close the tail first, which wakes the thread.
  void stop() { worker_.stop(); }

  // Waits until the events before `seq` are processed. Returns false at the deadline. If `hurry` is set, skips the
  // pause.
  bool wait_for(std::int64_t seq, std::chrono::steady_clock::time_point until, bool hurry = true);

  const std::string& name() const { return name_; }
  std::int64_t next_seq() const { return next_seq_.load(std::memory_order_acquire); }
  std::string problem() const;  // reason why it is blocked; empty: it is not

  // While it exists, the follower stops between two batches.
  class Pause {
   public:
    explicit Pause(Follower& follower) : lock_(follower.step_mutex_) {}

   private:
    std::unique_lock<std::mutex> lock_;
  };

 protected:
  // Derives rows from `events`, in order, given the current content of the table. `reader` belongs to the follower.
  virtual Result<FollowedRows> apply(const std::vector<EventPtr>& events, Reader& reader) = 0;
  // Called before the first batch, and after a commit of unknown outcome: compares the tables with what is known of
  // them.
  virtual Status begin(Reader&) { return success(); }
  // Moves the position, for `begin`, once the tables are derived from the events before it.
  Status move_to(std::int64_t next_seq);
  // Called before the commit of the rows and of the position after them.
  virtual void writing(const FollowedRows&, const CorpusEffects&, std::int64_t /*next_seq*/) {}
  // Called after the commit, before any waiting thread is woken.
  virtual void written(const FollowedRows&) {}

 private:
  struct Batch {
    std::vector<EventPtr> events;  // the relevant events
    std::int64_t next_seq = 0;
  };
  // A write that Postgres did not confirm.
  struct Unconfirmed {
    FollowedRows rows;
    std::int64_t next_seq = 0;
  };

  void follow();
  Status step();
  Result<Batch> read_batch();
  Result<Batch> read_table(std::int64_t from, std::int64_t end);
  // Returns false if the stored position is not this follower's; nothing was written then.
  Result<bool> write(const FollowedRows& rows, std::int64_t next_seq);
  Status look_again();
  bool concerns(std::string_view type) const;
  void pause(std::chrono::milliseconds time);
  void set_problem(std::string text);

  const std::string name_;
  const std::vector<std::string> types_;
  const Options options_;
  const Tail& tail_;
  Reader reader_;

  std::mutex step_mutex_;                 // held while a batch is read and written
  std::vector<Unconfirmed> unconfirmed_;  // writes since the last confirmed one: each may be committed
  std::atomic<std::int64_t> next_seq_{-1};
  metrics::Gauge& shown_;  // the same value, for server.metrics

  bool begun_ = false;

  bool hurried_ = false;  // a caller waits; guarded by the worker's lock, like the next member
  std::string problem_;
  WorkerThread worker_;
};

}  // namespace muniment::store
