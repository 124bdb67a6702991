#include "store/appender.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "base/failpoint.hpp"
#include "base/json.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "store/append_batch.hpp"
#include "store/append_connection.hpp"
#include "store/log_end.hpp"
#include "store/reader.hpp"

namespace muniment::store {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t checkpoint_every_events = 65'536;
constexpr milliseconds checkpoint_every{10'000};
constexpr milliseconds patience{20};      // of events that nobody waits for: one commit for all that come meanwhile
constexpr milliseconds connect_at_most{5'000}, retry_pause_least{50}, retry_pause_most{1'000};
constexpr std::int64_t clock_step_micros = 1'000'000;

}  // namespace

class Appender::Impl {
 public:
  Impl(AppenderOptions options, Clock& clock, Tail& tail, RunDirectory& runs)
      : options_(std::move(options)), clock_(clock), tail_(tail), runs_(runs),
        connection_(options_.uri, options_.log_no, make_uuid_v7(clock.now())) {}

  Status open();
  void start() { thread_ = named_thread("append", [this] { serve(); }); }
  Status submit(AppendRequest request);
  LogStatus status() const;
  void refuse(Error why);
  void stop();

  Appender* owner = nullptr;               // for its callbacks

 private:
  Status catch_up();

  void serve();
  void wait_for_work();
  void take_queue();
  std::vector<AppendRequest> take_all();   // what is pending, too
  void build(AppendBatch& batch);
  void note_clock_step(AppendBatch& batch, Time now);
  void commit(AppendBatch current, AppendBatch& next);
  void commit_one_by_one(std::vector<AppendRequest> requests);
  void give_back(AppendBatch& batch);
  bool resolve_doubt(AppendBatch& batch);  // true: it is in
  bool reconnect();
  void succeeded(AppendBatch& batch);
  void publish(AppendBatch& batch);
  void refuse(std::vector<AppendRequest> requests, const Error& error);
  void answered();
  void fatal(Error error);
  void checkpoint_if_due(bool now);
  void set_away(std::string why);

  const AppenderOptions options_;
  Clock& clock_;
  Tail& tail_;
  RunDirectory& runs_;
  AppendConnection connection_;

  // Shared, under mutex_.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<AppendRequest> queue_;
  std::size_t queued_events_ = 0;
  std::size_t queued_bytes_ = 0;
  std::optional<Monotonic> due_;           // when what is queued is to be taken; at once, if it is past
  bool waiting_ = false;
  bool stopping_ = false;
  bool dead_ = false;
  LogStatus published_;
  std::optional<Error> refusal_;

  // The append thread's.
  LogHead head_;                           // as numbered, maybe ahead of what is committed
  events::MerkleEdge committed_edge_;
  std::int64_t epoch_ = 0;
  LastRow last_committed_;
  std::deque<AppendRequest> pending_;      // taken from the queue, not yet in a batch
  std::int64_t checkpoint_size_ = 0;
  Monotonic checkpoint_time_{};
  Time last_wall_;
  Monotonic last_monotonic_{};
  std::thread thread_;
};

// ---- from other threads -------------------------------------------------------------------------

Status Appender::Impl::submit(AppendRequest request) {
  std::size_t bytes = 0;
  for (const Addressed& item : request.events) bytes += item.event.body.size();
  bool wake = false;
  request.queued = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || dead_) return Error(Errc::unavailable, "the daemon is stopping; your event was not accepted");
    if (refusal_) return *refusal_;
    if (!published_.away.empty()) {
      const std::int64_t since = (clock_.now().micros - published_.away_since.micros) / 1'000'000;
      Error error(Errc::unavailable, published_.away + " since " + std::to_string(since) +
                                         " s; your event was not accepted. Retry in 2 s with the same event_id.");
      error.retry_after_ms = 2'000;
      return error;
    }
    if (queued_events_ + request.events.size() > limits::append_queue_events_max ||
        queued_bytes_ + bytes > limits::append_queue_bytes_max) {
      Error error(Errc::over_budget, "the append queue is full (" + std::to_string(queued_events_) + " events, " +
                                         std::to_string(queued_bytes_) + " bytes). Retry in 100 ms.");
      error.limit = static_cast<std::int64_t>(limits::append_queue_events_max);
      error.retry_after_ms = 100;
      return error;
    }
    queued_events_ += request.events.size();
    queued_bytes_ += bytes;
    const Monotonic due = request.patient ? request.queued + patience : Monotonic();
    const bool sooner = !due_ || due < *due_;
    if (sooner) due_ = due;
    queue_.push_back(std::move(request));
    wake = sooner && std::exchange(waiting_, false);
  }
  if (wake) wake_.notify_one();
  return success();
}

LogStatus Appender::Impl::status() const {
  std::lock_guard lock(mutex_);
  LogStatus status = published_;
  status.size = committed_edge_.size();
  status.root = committed_edge_.root();
  status.queued_events = static_cast<std::int64_t>(queued_events_);
  status.queued_bytes = static_cast<std::int64_t>(queued_bytes_);
  return status;
}

void Appender::Impl::refuse(Error why) {
  log_error("nothing is appended any more", {{"error", why.message}});
  std::lock_guard lock(mutex_);
  published_.refused = why.message;
  refusal_ = std::move(why);
}

void Appender::Impl::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_ = false;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Appender::Impl::set_away(std::string why) {
  std::lock_guard lock(mutex_);
  if (published_.away.empty()) published_.away_since = clock_.now();
  published_.away = std::move(why);
}

// ---- at start -----------------------------------------------------------------------------------

Status Appender::Impl::open() {
  RETURN_IF_ERROR(connection_.connect(connect_at_most));
  ASSIGN_OR_RETURN(const bool locked, connection_.try_lock());
  if (!locked) {
    return Error(Errc::conflict, "log " + std::to_string(options_.log_no) +
                                     " is held by another daemon. Stop it first: muniment down");
  }
  ASSIGN_OR_RETURN(const TakenOver taken, connection_.take_over(std::nullopt));
  epoch_ = taken.epoch;
  head_.log_id = taken.log_id;
  RETURN_IF_ERROR(catch_up());
  published_.log_id = head_.log_id;
  published_.epoch = epoch_;
  tail_.start_at(head_.next_seq);
  return success();
}

Status Appender::Impl::catch_up() {
  ASSIGN_OR_RETURN(last_committed_, connection_.last_row());
  ASSIGN_OR_RETURN(head_.next_run_no, connection_.next_run_no());
  ASSIGN_OR_RETURN(head_.edge, connection_.last_checkpoint());
  checkpoint_size_ = head_.edge.size();
  if (last_committed_.seq + 1 < checkpoint_size_) {
    return Error(Errc::system_error, "log_rolled_back: the log has " + std::to_string(last_committed_.seq + 1) +
                                         " events, its last checkpoint " + std::to_string(checkpoint_size_) +
                                         ". Run muniment-verify, and see docs/runbook.md#log_rolled_back");
  }
  Reader reader({options_.uri, options_.log_no});
  RETURN_IF_ERROR(follow_tree(reader, head_.log_id, last_committed_.seq, head_.edge));
  committed_edge_ = head_.edge;
  head_.next_seq = head_.edge.size();
  checkpoint_time_ = last_monotonic_ = clock_.monotonic();
  last_wall_ = clock_.now();

  auto log_run = runs_.insert(std::make_shared<Run>(std::string(log_run_id)));
  EventFilter newest;
  newest.run_no = 0;
  newest.newest_first = true;
  ASSIGN_OR_RETURN(const auto last, reader.events(newest, 1));
  log_run->head = {0, last.empty() ? 0 : last[0].run_seq + 1, last.empty() ? Hash{} : last[0].run_hash, RunStatus::open};
  log_run->committed(log_run->head.run_seq);
  RunView view;
  view.status = RunStatus::open;
  view.owner = events::daemon_actor;
  view.origin = events::Origin::observed;
  view.run_no = view.first_seq = 0;
  log_run->publish(view);
  return success();
}

// ---- the append thread --------------------------------------------------------------------------

void Appender::Impl::serve() {
  AppendBatch next;
  for (;;) {
    if (next.idle()) wait_for_work();
    build(next);  // and what has come since it was begun
    const bool idle = next.idle();
    if (!idle) commit(std::exchange(next, AppendBatch()), next);
    checkpoint_if_due(false);
    if (!idle) continue;
    std::lock_guard lock(mutex_);
    if (dead_ || (stopping_ && queue_.empty() && pending_.empty())) break;
  }
  if (!dead_) checkpoint_if_due(true);
}

// Until something queued is due, or a checkpoint is.
void Appender::Impl::wait_for_work() {
  std::unique_lock lock(mutex_);
  while (pending_.empty() && !stopping_) {
    Monotonic next = due_.value_or(Monotonic::max());
    if (committed_edge_.size() > checkpoint_size_) next = std::min(next, checkpoint_time_ + checkpoint_every);
    if (next <= std::chrono::steady_clock::now()) break;
    waiting_ = true;
    next == Monotonic::max() ? wake_.wait(lock) : static_cast<void>(wake_.wait_until(lock, next));
  }
  waiting_ = false;
}

// Under the mutex: what is queued goes behind what is pending.
void Appender::Impl::take_queue() {
  std::move(queue_.begin(), queue_.end(), std::back_inserter(pending_));
  queue_.clear();
  due_.reset();
  queued_events_ = queued_bytes_ = 0;
}

std::vector<AppendRequest> Appender::Impl::take_all() {
  take_queue();
  auto all = std::exchange(pending_, {});
  return {std::make_move_iterator(all.begin()), std::make_move_iterator(all.end())};
}

void Appender::Impl::build(AppendBatch& batch) {
  {
    std::lock_guard lock(mutex_);
    if (due_ && (*due_ <= std::chrono::steady_clock::now() || stopping_)) take_queue();
  }
  if (pending_.empty()) return;
  const Time now = clock_.now();
  note_clock_step(batch, now);
  while (!pending_.empty() && !batch.full() && batch.fits(pending_.front())) {
    batch.add(std::move(pending_.front()), head_, now);
    pending_.pop_front();
  }
}

// recorded_at is the wall clock as it is; a step of it is an event of its own.
void Appender::Impl::note_clock_step(AppendBatch& batch, Time now) {
  const Monotonic steady = clock_.monotonic();
  const auto elapsed = std::chrono::duration_cast<std::chrono::microseconds>(steady - last_monotonic_).count();
  const std::int64_t step = now.micros - (last_wall_.micros + elapsed);
  const Time expected{last_wall_.micros + elapsed};
  last_wall_ = now;
  last_monotonic_ = steady;
  if (std::abs(step) <= clock_step_micros) return;
  events::NewEvent event;
  event.type = "clock.stepped";
  event.origin = events::Origin::observed;
  event.event_id = make_uuid_v7(now);
  event.event_id_is_ours = true;
  event.body = json::Writer().begin_object().member("before", format_time(expected)).member("after", format_time(now))
                   .member("step_us", step).end_object().text();
  events::seal(event);
  AppendRequest request;
  request.actor = events::daemon_actor;
  request.events.push_back({runs_.find(log_run_id), std::move(event), false});
  batch.add(std::move(request), head_, now);
}

void Appender::Impl::commit(AppendBatch current, AppendBatch& next) {
  if (!current.has_events()) return publish(current);  // refusals only
#ifdef MUNIMENT_PLANTED_BUG_ack_before_commit
  current.answer_accepted();
  answered();
#endif
  const CommitResult result = connection_.commit(current.rows(), epoch_, options_.commit_deadline, [&] { build(next); });
  switch (result.outcome) {
    case CommitOutcome::committed: return succeeded(current);
    case CommitOutcome::fenced:
      give_back(next);
      give_back(current);
      return fatal(Error(Errc::conflict, "fenced: another daemon has taken over log " + std::to_string(options_.log_no)));
    case CommitOutcome::refused: {
      give_back(next);
      return commit_one_by_one(current.undo(head_));
    }
    case CommitOutcome::rolled_back: {
      give_back(next);
      log_warning("append rolled back", {{"sqlstate", result.sqlstate}, {"error", result.message}});
      Error error(Errc::unavailable, "Postgres refused to write: " + result.message +
                                         "; your event was not accepted. Retry with the same event_id.");
      error.retry_after_ms = 1'000;
      return refuse(current.undo(head_), error);
    }
    case CommitOutcome::unknown:
      give_back(next);
      log_warning("append in doubt", {{"error", result.message}});
      if (resolve_doubt(current)) succeeded(current);
      return;
  }
}

// One of these requests is at fault; the others must not suffer for it.
void Appender::Impl::commit_one_by_one(std::vector<AppendRequest> requests) {
  for (AppendRequest& request : requests) {
    AppendBatch alone;
    const bool ids_checked = request.ids_checked;
    alone.add(std::move(request), head_, clock_.now());
    if (!alone.has_events()) {
      publish(alone);
      continue;
    }
    const CommitResult result = connection_.commit(alone.rows(), epoch_, options_.commit_deadline, [] {});
    if (result.outcome == CommitOutcome::committed) {
      succeeded(alone);
    } else if (result.outcome == CommitOutcome::unknown) {
      if (resolve_doubt(alone)) succeeded(alone);
    } else if (result.outcome == CommitOutcome::fenced) {
      give_back(alone);
      return fatal(Error(Errc::conflict, "fenced: another daemon has taken over log " + std::to_string(options_.log_no)));
    } else {
      // 23505 on a checked id: the same id was appended since it was asked for.
      const bool raced = result.sqlstate == "23505" && ids_checked;
      refuse(alone.undo(head_), raced ? Error(Errc::conflict, std::string(maybe_duplicate))
                                      : Error(Errc::invalid_argument, "Postgres refuses this event: " + result.message));
    }
  }
}

void Appender::Impl::give_back(AppendBatch& batch) {
  std::vector<AppendRequest> requests = batch.undo(head_);
  pending_.insert(pending_.begin(), std::make_move_iterator(requests.begin()), std::make_move_iterator(requests.end()));
}

void Appender::Impl::publish(AppendBatch& batch) {
  batch.committed(tail_);
  answered();
}

void Appender::Impl::refuse(std::vector<AppendRequest> requests, const Error& error) {
  AppendBatch::refuse(std::move(requests), error);
  answered();
}

void Appender::Impl::answered() {
  if (owner->on_answered) owner->on_answered();
}

void Appender::Impl::succeeded(AppendBatch& batch) {
  FAILPOINT("append.before_ack");
  last_committed_ = {batch.last_event()->seq, batch.last_event()->run_hash};
  {
    std::lock_guard lock(mutex_);
    committed_edge_ = batch.edge();
  }
  publish(batch);
  FAILPOINT("append.after_ack");
}

// event-log.md, Unknown outcome: the epoch first, since the old backend may still commit; only then
// is the last row a fact.
bool Appender::Impl::resolve_doubt(AppendBatch& batch) {
  for (;;) {
    if (!reconnect()) return false;
#ifndef MUNIMENT_PLANTED_BUG_blind_retry
    const auto last = connection_.last_row();
    if (!last) continue;
    const EventPtr& wanted = batch.last_event();
    if (last->seq == wanted->seq && last->run_hash == wanted->run_hash) return true;
    if (last->seq != last_committed_.seq || last->run_hash != last_committed_.run_hash) {
      fatal(Error(Errc::system_error, "the log's last event is " + std::to_string(last->seq) +
                                          ", which this daemon did not write. Run muniment-verify"));
      return false;
    }
#endif
    FAILPOINT("append.before_resend");
    const CommitResult again = connection_.commit(batch.rows(), epoch_, options_.commit_deadline, [] {});
    if (again.outcome == CommitOutcome::committed) return true;
    if (again.outcome == CommitOutcome::unknown) continue;
    if (again.outcome == CommitOutcome::fenced) {
      fatal(Error(Errc::conflict, "fenced: another daemon has taken over log " + std::to_string(options_.log_no)));
      return false;
    }
    if (again.outcome == CommitOutcome::refused) {
      commit_one_by_one(batch.undo(head_));
    } else {
      refuse(batch.undo(head_), Error(Errc::unavailable, "Postgres refused to write: " + again.message +
                                                       "; your event was not accepted. Retry with the same event_id."));
    }
    return false;
  }
}

// Until Postgres answers and the epoch is ours again. Requests that wait are refused meanwhile:
// they were not sent, so that is certain. False: the daemon must not go on, or stops.
bool Appender::Impl::reconnect() {
  milliseconds pause = retry_pause_least;
  for (;;) {
    Status connected = connection_.connect(connect_at_most);
    if (connected) {
      auto taken = connection_.take_over(epoch_);
      if (taken) {
        epoch_ = taken->epoch;
        connection_.try_lock().ok();
        set_away("");
        log_info("append connection is back", {{"epoch", std::to_string(epoch_)}});
        return true;
      }
      if (taken.error().code == Errc::conflict) {
        fatal(std::move(taken).error());
        return false;
      }
    }
    set_away("Postgres does not answer");
    std::unique_lock lock(mutex_);
    std::vector<AppendRequest> waiting = take_all();
    const bool stopping = stopping_;
    lock.unlock();
    refuse(std::move(waiting), Error(Errc::unavailable, "Postgres does not answer; your event was not accepted. "
                                                                     "Retry in 2 s with the same event_id."));
    if (stopping) return false;
    lock.lock();
    wake_.wait_for(lock, pause, [&] { return stopping_; });
    pause = std::min(pause * 2, retry_pause_most);
  }
}

void Appender::Impl::fatal(Error error) {
  log_error("the append thread stops", {{"code", std::string(name_of(error.code))}, {"error", error.message}});
  std::unique_lock lock(mutex_);
  dead_ = true;
  std::vector<AppendRequest> waiting = take_all();
  lock.unlock();
  refuse(std::move(waiting), Error(Errc::unavailable, error.message + "; your event was not accepted"));
  if (owner->on_fatal) owner->on_fatal(std::move(error));
}

void Appender::Impl::checkpoint_if_due(bool now) {
  const std::int64_t newer = committed_edge_.size() - checkpoint_size_;
  const bool due = newer >= checkpoint_every_events || clock_.monotonic() >= checkpoint_time_ + checkpoint_every;
  if (newer == 0 || !(due || now) || !connection_.connected()) return;
  const CommitResult stored = connection_.store_checkpoint(committed_edge_, clock_.now(), epoch_, options_.commit_deadline);
  // A checkpoint that was not stored is no loss: the next one covers it, and a start recomputes.
  if (stored.outcome == CommitOutcome::committed) checkpoint_size_ = committed_edge_.size();
  checkpoint_time_ = clock_.monotonic();
}

// ---- Appender -----------------------------------------------------------------------------------

Appender::Appender(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) { impl_->owner = this; }
Appender::~Appender() { stop(); }

Result<std::unique_ptr<Appender>> Appender::open(AppenderOptions options, Clock& clock, Tail& tail, RunDirectory& runs) {
  auto impl = std::make_unique<Impl>(std::move(options), clock, tail, runs);
  RETURN_IF_ERROR(impl->open());
  std::unique_ptr<Appender> appender(new Appender(std::move(impl)));
  appender->impl_->start();
  return appender;
}

Status Appender::submit(AppendRequest request) { return impl_->submit(std::move(request)); }
LogStatus Appender::status() const { return impl_->status(); }
void Appender::refuse(Error why) { impl_->refuse(std::move(why)); }
void Appender::stop() { impl_->stop(); }

}  // namespace muniment::store
