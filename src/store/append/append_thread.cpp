// Implements the loop of the append thread: it takes queued requests, numbers them, and commits each batch until its
// outcome is known (append_unknown.cpp). Only then does it answer the requests and number more.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/json/json.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "store/append/appender_impl.hpp"

namespace muniment::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::int64_t checkpoint_every_events = 65'536;
constexpr milliseconds checkpoint_every{10'000};
constexpr milliseconds probe_at_most{5'000};
constexpr milliseconds unstored_pause{1'000};
constexpr std::int64_t clock_step_micros = 1'000'000;

Error not_accepted(const Error& why) { return Error(why.code, why.message + "; your event was not accepted"); }

// Error for a single request that Postgres refuses because of its data.
Error refusal_of(const CommitResult& result) {
  // The constraints that fail if a concurrent request appended the same id, use of evidence, link or change of a task
  // after the caller's check. The caller checks again.
  constexpr std::array<std::string_view, 4> raced_for = {"evidence_use", "evidence_link_once", "task_change_once",
                                                         "task_evidence_once"};
  const bool raced =
      result.constraint.ends_with("_event_id") || std::ranges::find(raced_for, result.constraint) != raced_for.end();
  if (raced) return store::requeue(AppendConflict::maybe_duplicate);
  if (result.sqlstate == "23505") return Error(Errc::conflict, "this id exists already: " + result.message);
  return Error(Errc::invalid_argument, "Postgres refuses this event: " + result.message);
}

}  // namespace

void Appender::Impl::serve() {
  while (!ended_) {
    if (next_.idle()) wait_for_work();
    look();
    if (ended_) break;
    build(next_);  // and the requests that arrived since then
    const bool idle = next_.idle();
    if (!idle) commit(std::exchange(next_, AppendBatch()));
    if (ended_) break;
    checkpoint_if_due(false);
    if (!idle) continue;
    std::lock_guard lock(mutex_);
    if (stopping_ && queue_.empty() && pending_.empty() && unstored_.empty()) break;
  }
  if (!ended_) return checkpoint_if_due(true);
  requeue(next_);  // a batch with an unknown outcome stays undecided
  std::unique_lock lock(mutex_);
  std::vector<AppendRequest> waiting = take_all();
  lock.unlock();
  refuse(std::move(waiting), not_accepted(*ended_));
}

// Waits until a queued request, a checkpoint, a pending event of the daemon or a check of Postgres is due.
void Appender::Impl::wait_for_work() {
  std::unique_lock lock(mutex_);
  while (pending_.empty() && !stopping_) {
    Monotonic next = std::min({due_.value_or(Monotonic::max()), heard_ + probe_every, looked_ + settings_every});
    if (committed_edge_.size() > checkpoint_size_) next = std::min(next, checkpoint_time_ + checkpoint_every);
    if (!unstored_.empty()) next = std::min(next, unstored_due_);
    if (next <= steady_clock::now()) break;
    waiting_ = true;
    wake_.wait_until(lock, next);
  }
  waiting_ = false;
}

// Checks Postgres without an append. A frozen server reports nothing, and its settings may change while the daemon
// runs; an idle daemon must detect both.
void Appender::Impl::look() {
  const Monotonic now = steady_clock::now();
  if (ended_ || !look_due(now)) return;
  if (owned_) {
    const auto unsafe = connection_.unsafe_setting(probe_at_most);
    owned_ = unsafe.ok();
    heard_ = looked_ = steady_clock::now();
    if (unsafe && unsafe->empty()) return hold_lock();
  }
  recover_own_end();
}

// Appends the queue to the pending requests. The caller holds the mutex.
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
  bool last_chance = false;
  {
    std::lock_guard lock(mutex_);
    if (due_ && (*due_ <= steady_clock::now() || stopping_)) take_queue();
    last_chance = stopping_;
  }
  if (!unstored_.empty() && (!pending_.empty() || last_chance || unstored_due_ <= steady_clock::now())) {
    pending_.insert(pending_.begin(), std::make_move_iterator(unstored_.begin()),
                    std::make_move_iterator(unstored_.end()));
    unstored_.clear();
  }
  if (pending_.empty()) return;
  const Time now = stamp();
  ErasureGate::Numbering numbering(erasure_gate_);
  head_.erasures = numbering.erasures();
  note_clock_step(batch, now);
  while (!pending_.empty() && !batch.full() && batch.fits(pending_.front())) {
    batch.add(std::move(pending_.front()), head_, now);
    pending_.pop_front();
  }
  numbering.next_seq = head_.next_seq;
}

// Returns recorded_at for the next events. The time is marked as undecided before the clock is read. A reader that
// finds nothing undecided before a time therefore never misses an event of that time.
Time Appender::Impl::stamp() {
  tail_.undecided_from(std::min({in_flight_from_, next_.oldest(), clock_.now().micros}));
  return clock_.now();
}

// Marks the batch as in flight: from here on Postgres may commit it and readers may see it.
void Appender::Impl::mark_in_flight(const AppendBatch& batch) {
  in_flight_from_ = batch.oldest();
  in_flight_events_ = std::ssize(batch.rows().events);
}

// Marks the outcome of the batch in flight as known.
void Appender::Impl::mark_decided() {
  in_flight_from_ = Tail::nothing_undecided;
  in_flight_events_ = 0;
  publish_undecided();
}

AppendRequest Appender::Impl::required_event(std::string_view type, std::string body) const {
  AppendRequest request = own_request(runs_, type, std::move(body), clock_.now());
  request.must_be_stored = true;
  return request;
}

// Keeps the daemon's own events for a retry, because no client resends them. A stopping thread has made its last
// attempt and logs them.
void Appender::Impl::keep_unstored(std::vector<AppendRequest>& requests) {
  const auto first = std::stable_partition(requests.begin(), requests.end(),
                                           [](const AppendRequest& request) { return !request.must_be_stored; });
  if (first == requests.end()) return;
  std::unique_lock lock(mutex_);
  const bool stopping = stopping_;
  lock.unlock();
  for (auto request = first; request != requests.end(); ++request) {
    if (stopping) {
      log_error("an event of the daemon's own is not in the log: it stops",
                {{"type", request->events.front().event.type}});
    } else {
      unstored_.push_back(std::move(*request));
    }
  }
  requests.erase(first, requests.end());
  unstored_due_ = steady_clock::now() + unstored_pause;
}

// recorded_at follows the wall clock; a step of the clock is recorded as an event.
void Appender::Impl::note_clock_step(AppendBatch& batch, Time now) {
  const Monotonic steady = clock_.monotonic();
  const auto elapsed = std::chrono::duration_cast<std::chrono::microseconds>(steady - last_monotonic_).count();
  const std::int64_t step = now.micros - (last_wall_.micros + elapsed);
  const Time expected{last_wall_.micros + elapsed};
  last_wall_ = now;
  last_monotonic_ = steady;
  if (std::abs(step) <= clock_step_micros) return;
  batch.add(required_event("clock.stepped", json::Writer()
                                                .begin_object()
                                                .member("before", format_time(expected))
                                                .member("after", format_time(now))
                                                .member("step_us", step)
                                                .end_object()
                                                .text()),
            head_, now);
}

void Appender::Impl::commit(AppendBatch batch) {
  if (!batch.has_events()) return publish(batch);  // only refused requests
  mark_in_flight(batch);
  const CommitResult result = write(batch, [&] { build(next_); });
  conclude(std::move(batch), result);
}

// Commits the requests one by one, because only one of them is at fault and must not affect its batch mates.
void Appender::Impl::commit_one_by_one(std::vector<AppendRequest> requests) {
  for (AppendRequest& request : requests) {
    if (ended_) {
      pending_.push_back(std::move(request));  // refused together with the other pending requests
      continue;
    }
    AppendBatch alone;
    add_alone(alone, std::move(request));
    if (!alone.has_events()) {
      publish(alone);
      continue;
    }
    mark_in_flight(alone);
    const CommitResult result = write(alone, [] {});
    conclude(std::move(alone), result);
  }
}

void Appender::Impl::add_alone(AppendBatch& batch, AppendRequest request) {
  ErasureGate::Numbering numbering(erasure_gate_);
  head_.erasures = numbering.erasures();
  batch.add(std::move(request), head_, stamp());
  numbering.next_seq = head_.next_seq;
}

// Undoes the numbering and wakes threads that wait for the numbered events.
std::vector<AppendRequest> Appender::Impl::undo(AppendBatch& batch) {
  ErasureGate::Numbering numbering(erasure_gate_);
  std::vector<AppendRequest> requests = batch.undo(head_);
  numbering.next_seq = head_.next_seq;
  return requests;
}

// Answers all requests according to the known outcome. A batch that was not committed is undone before anything else is
// numbered. If the outcome cannot be determined, the thread has ended and numbers no further events.
void Appender::Impl::conclude(AppendBatch batch, const CommitResult& result) {
  if (result.outcome == CommitOutcome::committed) return succeeded(batch);
  std::vector<AppendRequest> requests = undo(batch);
  if (result.outcome == CommitOutcome::unknown) {
    Error error(
        Errc::unavailable,
        "the daemon stops before Postgres has confirmed your event: the outcome is unknown. Retry with the same event_id.");
    error.outcome = "unknown";
    return refuse(std::move(requests), error);
  }
  mark_decided();
  if (ended_) return refuse(std::move(requests), not_accepted(*ended_));
  if (result.outcome == CommitOutcome::refused) {
    if (requests.size() > 1) return commit_one_by_one(std::move(requests));
    // A retry would be refused again.
    if (requests.front().must_be_stored)
      log_error("an event of the daemon's own is refused",
                {{"type", requests.front().events.front().event.type}, {"error", result.message}});
    return refuse(std::move(requests), refusal_of(result));
  }
  log_warning("append rolled back", {{"sqlstate", result.sqlstate}, {"error", result.message}});
  Error error(Errc::unavailable, "Postgres refused to write: " + result.message +
                                     "; your event was not accepted. Retry with the same event_id.");
  error.retry_after_ms = 1'000;
  keep_unstored(requests);
  refuse(std::move(requests), error);
}

void Appender::Impl::succeeded(AppendBatch& batch) {
  FAILPOINT("append.before_ack");
  last_committed_ = {batch.last_event()->seq, batch.last_event()->run_hash};
  heard_ = steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    committed_edge_ = batch.edge();
  }
  publish(batch);
  FAILPOINT("append.after_ack");
}

void Appender::Impl::publish(AppendBatch& batch) {
  mark_decided();
  batch.committed(tail_);
  answered();
}

void Appender::Impl::requeue(AppendBatch& batch) {
  std::vector<AppendRequest> requests = undo(batch);
  pending_.insert(pending_.begin(), std::make_move_iterator(requests.begin()), std::make_move_iterator(requests.end()));
  publish_undecided();
}

void Appender::Impl::refuse(std::vector<AppendRequest> requests, const Error& error) {
  AppendBatch::refuse(std::move(requests), error);
  answered();
}

void Appender::Impl::answered() {
  if (owner->on_answered) owner->on_answered();
}

void Appender::Impl::checkpoint_if_due(bool now) {
  const std::int64_t newer = committed_edge_.size() - checkpoint_size_;
  const bool due = newer >= checkpoint_every_events || clock_.monotonic() >= checkpoint_time_ + checkpoint_every;
  if (newer == 0 || !(due || now)) return;
  checkpoint_time_ = clock_.monotonic();
  // A new daemon stores a checkpoint only after its first append to the log.
  if (committed_edge_.size() == size_at_start_ || !owned_ || !status().refused.empty()) return;
  const CommitResult stored =
      connection_.store_checkpoint(committed_edge_, clock_.now(), epoch_, options_.commit_deadline);
  // A failed checkpoint loses nothing: the next one covers it, and a start recomputes the tree.
  owned_ = stored.outcome == CommitOutcome::committed;
  if (owned_) checkpoint_size_ = committed_edge_.size();
}

}  // namespace muniment::store
