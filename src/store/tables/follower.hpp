// A follower: a thread that reads the log by position and keeps tables that follow from it. What it
// writes and how far it has read are one transaction, so that a crash repeats nothing and skips
// nothing. At rest it sleeps until the next commit.
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
#include "store/read/reader.hpp"
#include "store/tables/report_rows.hpp"

namespace muniment::store {

// What a batch of events comes to. Rows replace those with the same key.
struct FollowedRows {
  std::vector<RunRow> runs{};
  std::vector<PointerRow> pointers{};
  std::vector<CorpusChange> corpus{};  // in order: one may end what another began
  ReportRows report{};
  std::optional<std::int64_t> next_seq{};  // where the batch was too much: it was read up to here
};

// Keeps how far the follower `name` has read, for one that writes no tables with it.
Status keep_position(Connection& connection, std::int16_t log_no, std::string_view name, std::int64_t next_seq);

class Follower {
 public:
  struct Options {
    LogPlace place;
    // Between two batches: under load a commit of ours serves many of the log's.
    std::chrono::milliseconds batch_pause{100};
  };

  // `types`: the events that concern it, as in EventFilter.
  Follower(std::string name, std::vector<std::string> types, Options options, const Tail& tail);
  virtual ~Follower();  // a derived class calls `stop` in its own destructor

  void start();
  // Catches up with what is committed and ends the thread. Close the tail first: it wakes the thread.
  void stop() { worker_.stop(); }

  // Until it has seen what comes before `seq`; false when the deadline passed. `hurry`: without its pause.
  bool wait_for(std::int64_t seq, std::chrono::steady_clock::time_point until, bool hurry = true);

  const std::string& name() const { return name_; }
  std::int64_t next_seq() const { return next_seq_.load(std::memory_order_acquire); }
  std::string problem() const;  // why it does not get on; empty: it does

  // Holds the follower between two batches for as long as it lives.
  class Pause {
   public:
    explicit Pause(Follower& follower) : lock_(follower.step_mutex_) {}

   private:
    std::unique_lock<std::mutex> lock_;
  };

 protected:
  // The rows that follow from `events`, in order, given what the table holds already. `reader` is
  // the follower's own.
  virtual Result<FollowedRows> apply(const std::vector<EventPtr>& events, Reader& reader) = 0;
  // They are committed, and nobody was told yet.
  virtual void written(const FollowedRows&) {}

 private:
  struct Batch {
    std::vector<EventPtr> events;  // those that concern it
    std::int64_t next_seq = 0;
  };
  // What was written, and Postgres did not confirm it.
  struct Unconfirmed {
    FollowedRows rows;
    std::int64_t next_seq = 0;
  };

  void follow();
  Status step();
  Result<Batch> read_batch();
  Result<Batch> read_table(std::int64_t from, std::int64_t end);
  // False: the position is not what this follower has read up to, and nothing was written.
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
  std::vector<Unconfirmed> unconfirmed_;  // since the last that was confirmed: any of them may be there
  std::atomic<std::int64_t> next_seq_{-1};
  metrics::Gauge& shown_;  // the same, for server.metrics

  bool hurried_ = false;  // a caller waits for it; guarded by the worker's lock, as is the next
  std::string problem_;
  WorkerThread worker_;
};

}  // namespace muniment::store
