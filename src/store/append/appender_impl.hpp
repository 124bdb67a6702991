// Declares what the files of the Appender share. appender.cpp: calls from other threads, and the start.
// append_thread.cpp: the loop of the thread and the handling of a batch. append_unknown.cpp: batches with an unknown
// outcome.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "base/process/thread.hpp"
#include "store/append/append_batch.hpp"
#include "store/append/append_connection.hpp"
#include "store/append/appender.hpp"
#include "store/append/log_end.hpp"
#include "store/append/own_event.hpp"

namespace muniment::store {

class Appender::Impl {
 public:
  Impl(AppenderOptions options, Clock& clock, Tail& tail, RunDirectory& runs)
      : options_(std::move(options)),
        clock_(clock),
        tail_(tail),
        runs_(runs),
        connection_(options_.uri, options_.log_no, make_uuid_v7(clock.now()), options_.folder, options_.standbys) {}

  Status open();
  void start() {
    thread_ = named_thread("append", [this] { serve(); });
  }
  Status submit(AppendRequest request);
  LogStatus status() const;
  std::optional<Hash> root_at_start(std::int64_t size) const {
    return roots_at_start_.contains(size) ? roots_at_start_.at(size) : std::nullopt;
  }
  void refuse(Error why);
  void close();
  void stop();

  ErasureGate& erasure_gate() { return erasure_gate_; }

  Appender* owner = nullptr;  // owner of the callbacks

 private:
  // Reason why nothing can be appended at the moment; `why` is empty if there is none.
  struct Obstacle {
    std::string why;
    bool silent = false;  // Postgres does not answer
  };
  enum class Recovery {
    ours,   // connected, and this process holds the epoch
    taken,  // another daemon has taken over the log: the thread has ended
    lost,   // the daemon stops before Postgres answers: the thread has ended
  };

  Status catch_up();

  // The loop of the thread.
  void serve();
  void wait_for_work();
  bool look_due(Monotonic now) const { return now >= heard_ + probe_every || now >= looked_ + settings_every; }
  void look();
  void take_queue();
  std::vector<AppendRequest> take_all();  // including pending requests
  void build(AppendBatch& batch);
  void add_alone(AppendBatch& batch, AppendRequest request);
  std::vector<AppendRequest> undo(AppendBatch& batch);
  void note_clock_step(AppendBatch& batch, Time now);
  AppendRequest required_event(std::string_view type, std::string body) const;
  void keep_unstored(std::vector<AppendRequest>& requests);
  Time stamp();
  void publish_undecided() { tail_.undecided_from(std::min(in_flight_from_, next_.oldest())); }
  void mark_in_flight(const AppendBatch& batch);
  void mark_decided();
  void checkpoint_if_due(bool now);

  // Commit and outcome of a batch.
  void commit(AppendBatch batch);
  void commit_one_by_one(std::vector<AppendRequest> requests);
  void conclude(AppendBatch batch, const CommitResult& result);
  void succeeded(AppendBatch& batch);
  void publish(AppendBatch& batch);
  void requeue(AppendBatch& batch);
  void refuse(std::vector<AppendRequest> requests, const Error& error);
  void answered();

  // Returns when the outcome is known.
  CommitResult write(const AppendBatch& batch, const std::function<void()>& meanwhile);
  CommitResult find_out(const AppendBatch& batch, CommitResult result);
  CommitResult refused(CommitResult result);
  CommitResult make_partition(const AppendBatch& batch, const CommitResult& result);
  Result<bool> is_in(const AppendBatch& batch);
  Recovery recover();
  Recovery recover_own_end();
  Obstacle regain();
  void hold_lock();
  void go_away(const Obstacle& obstacle);
  void come_back();
  void end(Error why);
  void fenced_off();
  void fail_stop(const LastRow& last, const events::MerkleEdge& own);
  void stop_for(std::string_view code, std::string_view what, const events::MerkleEdge& own);

  static constexpr std::chrono::milliseconds probe_every{5'000};      // interval of checks while Postgres is idle
  static constexpr std::chrono::milliseconds settings_every{60'000};  // interval regardless of the load

  const AppenderOptions options_;
  Clock& clock_;
  Tail& tail_;
  RunDirectory& runs_;
  AppendConnection connection_;
  ErasureGate erasure_gate_;

  // Shared between threads, guarded by mutex_.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<AppendRequest> queue_;
  std::size_t queued_events_ = 0;
  std::size_t queued_bytes_ = 0;
  std::optional<Monotonic> due_;  // time at which the queue is taken; immediately if it has passed
  bool waiting_ = false;
  bool stopping_ = false;
  std::optional<Error> ended_;  // reason why the thread numbers no further events; set only by the thread
  LogStatus published_;
  std::optional<Error> refusal_;
  std::int64_t refused_requests_ = 0;  // number since Postgres became unavailable
  std::int64_t refused_events_ = 0;

  // Used only by the append thread. Numbers are assigned in this order: committed events, the batch in flight, next_.
  // No other code moves head_.
  LogHead head_;
  LastRow last_committed_;
  events::MerkleEdge committed_edge_;                      // written under mutex_
  AppendBatch next_;                                       // built while the preceding batch is in flight
  std::deque<AppendRequest> pending_;                      // taken from the queue, not yet in a batch
  std::vector<AppendRequest> unstored_;                    // the daemon's own events that Postgres refused, in order
  Monotonic unstored_due_{};                               // latest time of their next attempt
  std::atomic<std::int64_t> in_flight_events_ = 0;         // number of events in the batch in flight
  std::int64_t in_flight_from_ = Tail::nothing_undecided;  // AppendBatch::oldest of the batch with unknown outcome
  std::int64_t epoch_ = 0;
  bool owned_ =
      false;  // the connection works without a commit in doubt, and this process held the epoch at the last check
  bool locked_ = false;           // it also holds the advisory lock
  Monotonic heard_{}, looked_{};  // times of the last answer of Postgres and of the last check of its settings
  std::int64_t size_at_start_ = 0;
  std::int64_t checkpoint_size_ = 0;
  Monotonic checkpoint_time_{};
  Time last_wall_;
  Monotonic last_monotonic_{};
  RootsBySize roots_at_start_;  // constant after `open`
  std::thread thread_;
};

}  // namespace muniment::store
