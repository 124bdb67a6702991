// Determines the outcome of a batch on behalf of the append thread. It raises the epoch first, because the backend with
// the batch may still commit it: the raise waits for that backend or fences it. Only then is the end of the log
// reliable.
#include <algorithm>
#include <utility>

#include "base/json/json.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "base/text.hpp"
#include "store/append/appender_impl.hpp"

namespace muniment::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds connect_again_at_most{5'000}, look_at_most{5'000}, retry_pause_least{50},
    retry_pause_most{1'000};
constexpr std::size_t reason_bytes_max = 4'096;  // limit in schema/event/log.resumed.json

}  // namespace

// Returns a certain outcome, or `unknown` or `fenced` if the thread has ended.
CommitResult Appender::Impl::write(const AppendBatch& batch, const std::function<void()>& meanwhile) {
  // A gap or an overlap in the log could never be repaired, so a thread that numbered wrongly stops writing.
  if (batch.first_seq() != last_committed_.seq + 1) {
    end(Error(Errc::system_error, "the batch begins at " + std::to_string(batch.first_seq()) + ", the log ends at " +
                                      std::to_string(last_committed_.seq) + ": please report this"));
    if (owner->on_fatal) owner->on_fatal(*ended_);
    return {CommitOutcome::fenced};
  }
  if (ended_ || (!owned_ && recover_own_end() != Recovery::ours)) return {CommitOutcome::fenced};
  // Recorded before the COMMIT is sent, because Postgres executes it even if the daemon is killed at that moment.
  const auto note_written = [&] {
    if (options_.written != nullptr) options_.written->note(committed_edge_, batch.edge());
  };
  CommitResult result = connection_.commit(batch.rows(), epoch_, options_.commit_deadline, {note_written, meanwhile});
  if (result.outcome == CommitOutcome::committed) return result;
  requeue(next_);  // it follows events that may not be committed
  for (bool partition_made = false;;) {
    switch (result.outcome) {
      case CommitOutcome::committed:
      case CommitOutcome::rolled_back: return result;
      case CommitOutcome::refused: return refused(std::move(result));
      case CommitOutcome::rows_lost:
        stop_for("tables_changed", result.message + ": the log's tables were altered (by a trigger, for example). ",
                 committed_edge_);
        return result;
      case CommitOutcome::no_partition:
        if (std::exchange(partition_made, true)) return {CommitOutcome::rolled_back, result.sqlstate, result.message};
        result = make_partition(batch, result);
        break;
      case CommitOutcome::fenced:
      case CommitOutcome::unknown: result = find_out(batch, std::move(result)); break;
    }
    if (result.outcome == CommitOutcome::committed || result.outcome == CommitOutcome::rolled_back || ended_)
      return result;
    FAILPOINT("append.before_resend");
    result = connection_.commit(batch.rows(), epoch_, options_.commit_deadline, {note_written, [] {}});
  }
}

// Determines whether the batch is committed, and retries until that is certain. `fenced`: it is not committed and may
// be sent again unless the thread has ended.
CommitResult Appender::Impl::find_out(const AppendBatch& batch, CommitResult result) {
  log_warning("append in doubt",
              {{"error", result.outcome == CommitOutcome::fenced ? "the epoch was raised" : result.message}});
  // An UPDATE of this process that Postgres executed after the client abandoned it fences this process too. The head
  // names the process that raised the epoch.
  for (;;) {
    owned_ = false;
    const Recovery recovery = recover();
    if (recovery == Recovery::lost) return result;
    const Result<bool> in = is_in(batch);
    if (in) return {*in ? CommitOutcome::committed : CommitOutcome::fenced};
    if (ended_) return result;
  }
}

// Handles a refusal because of the data. If a foreign row has the position of the batch, no request is at fault.
CommitResult Appender::Impl::refused(CommitResult result) {
  const auto last = connection_.last_row();
  if (!last) {
    owned_ = false;
    return {CommitOutcome::rolled_back, "", last.error().message};
  }
  if (*last == last_committed_) return result;
  fail_stop(*last, committed_edge_);
  return {CommitOutcome::fenced};
}

// Fallback if the creation of the partition ahead of time (daemon/wiring.cpp) failed.
CommitResult Appender::Impl::make_partition(const AppendBatch& batch, const CommitResult& result) {
  for (const std::int64_t seq : {batch.first_seq(), batch.last_event()->seq}) {
    const Status made = connection_.make_partition(seq);
    if (made) continue;
    log_error("making a partition", {{"error", made.error().message}});
    return {CommitOutcome::rolled_back, result.sqlstate, made.error().message};
  }
  return result;
}

Result<bool> Appender::Impl::is_in(const AppendBatch& batch) {
  const LastRow wanted{batch.last_event()->seq, batch.last_event()->run_hash};
  ASSIGN_OR_RETURN(const LastRow last, connection_.last_row());
  if (last == wanted) return true;
  if (last == last_committed_) return false;
  ASSIGN_OR_RETURN(const LastRow there, connection_.row_at(wanted.seq));
  if (!ended_) fail_stop(last, there == wanted ? batch.edge() : committed_edge_);
  return there == wanted;
}

// Retries until Postgres answers and this process holds the epoch again. Waiting requests were not sent, so they are
// refused with a certain outcome. The event of an earlier outage that is not in the log yet stays pending.
Appender::Impl::Recovery Appender::Impl::recover() {
  requeue(next_);
  for (milliseconds pause = retry_pause_least;; pause = std::min(pause * 2, retry_pause_most)) {
    const Obstacle obstacle = regain();
    if (ended_) return Recovery::taken;
    if (obstacle.why.empty()) {
      come_back();
      return Recovery::ours;
    }
    go_away(obstacle);
    std::unique_lock lock(mutex_);
    std::vector<AppendRequest> waiting = take_all();
    lock.unlock();
    keep_unstored(waiting);
    lock.lock();
    refused_requests_ += static_cast<std::int64_t>(waiting.size());
    for (const AppendRequest& request : waiting) refused_events_ += static_cast<std::int64_t>(request.events.size());
    const bool stopping = stopping_;
    lock.unlock();
    refuse(
        std::move(waiting),
        Error(Errc::unavailable, obstacle.why + "; your event was not accepted. Retry in 2 s with the same event_id."));
    if (stopping) {
      end(Error(Errc::unavailable, "the daemon is stopping, and " + obstacle.why));
      return Recovery::lost;
    }
    lock.lock();
    wake_.wait_for(lock, pause, [&] { return stopping_; });
  }
}

// Recovers when no batch is in doubt. The server may be a different one than before, such as a standby without the last
// commits.
Appender::Impl::Recovery Appender::Impl::recover_own_end() {
  for (;;) {
    const Recovery recovery = recover();
    if (recovery != Recovery::ours) return recovery;
    const auto last = connection_.last_row();
    if (!last) {
      owned_ = false;
      continue;
    }
    if (*last == last_committed_) return recovery;
    fail_stop(*last, committed_edge_);
    return Recovery::taken;
  }
}

Appender::Impl::Obstacle Appender::Impl::regain() {
  const Obstacle silence{"Postgres does not answer", true};
  if (!owned_) {
    locked_ = false;
    if (const Status connected = connection_.connect(connect_again_at_most); !connected) return silence;
  }
  // Checked before the epoch is raised, because the raise would wait for missing standbys.
  const auto unsafe = connection_.unsafe_setting(look_at_most);
  heard_ = looked_ = steady_clock::now();
  if (!unsafe) {
    owned_ = false;
    return silence;
  }
  if (!unsafe->empty()) return {*unsafe, false};
  if (!owned_) {
    const auto taken = connection_.take_over(epoch_);
    if (!taken && taken.error().code == Errc::conflict) fenced_off();
    if (!taken) return silence;
    epoch_ = taken->epoch;
    // The raise was written after every commit in doubt, so standbys that have it have those too.
    if (const Status confirmed = connection_.await_standbys(look_at_most); !confirmed)
      return {confirmed.error().message, false};
    owned_ = true;
  }
  hold_lock();
  return {};
}

// Retries the lock, because the previous session may not have ended yet and still holds it.
void Appender::Impl::hold_lock() {
  if (locked_) return;
  const auto locked = connection_.try_lock();
  locked_ = locked && *locked;
  owned_ = locked.ok();
}

void Appender::Impl::go_away(const Obstacle& obstacle) {
  std::lock_guard lock(mutex_);
  if (published_.away != obstacle.why) log_warning("appends are suspended", {{"error", obstacle.why}});
  if (published_.away.empty()) {
    published_.since = clock_.now();
    refused_requests_ = refused_events_ = 0;
  }
  published_.away = obstacle.why;
  published_.silent = obstacle.silent;
}

// Records the end of an outage as an event: its time span, its reason and the number of refused requests.
void Appender::Impl::come_back() {
  json::Writer body;
  {
    std::lock_guard lock(mutex_);
    published_.epoch = epoch_;
    if (published_.away.empty()) return;
    const Time now = clock_.now();
    body.begin_object()
        .member("since", format_time(published_.since))
        .member("until", format_time(now))
        .member("reason", preview(published_.away, reason_bytes_max));
    body.member("requests_refused", refused_requests_).member("events_refused", refused_events_).end_object();
    published_.away.clear();
    published_.silent = false;
    published_.since = now;
  }
  log_info("appends are accepted again", {{"epoch", epoch_}});
  pending_.push_front(required_event("log.resumed", std::move(body).text()));
}

// Ends the thread's work: no further event is numbered or sent.
void Appender::Impl::end(Error why) {
  log_error("the append thread ends", {{"code", name_of(why.code)}, {"error", why.message}});
  std::lock_guard lock(mutex_);
  ended_ = std::move(why);
}

void Appender::Impl::fenced_off() {
  end(Error(Errc::unavailable, "fenced: another daemon has taken over log " + std::to_string(options_.log_no)));
  if (owner->on_fatal) owner->on_fatal(*ended_);
}

void Appender::Impl::fail_stop(const LastRow& last, const events::MerkleEdge& own) {
  if (last.seq + 1 < own.size()) {
    return stop_for("log_rolled_back",
                    "the log ends at " + std::to_string(last.seq) + ", and this daemon wrote up to " +
                        std::to_string(own.size() - 1) +
                        ": the database was replaced by an older copy, or events were deleted. ",
                    own);
  }
  stop_for("another_writer",
           "another program writes to the log: it ends at " + std::to_string(last.seq) +
               " with a foreign event, while this daemon wrote up to " + std::to_string(own.size() - 1) + ". ",
           own);
}

// `own` is the end of this daemon's events. It is stored as the written end, so that no start adopts later events.
void Appender::Impl::stop_for(std::string_view code, std::string_view what, const events::MerkleEdge& own) {
  const std::string name(code);
  const Error why(Errc::system_error,
                  name + ": " + std::string(what) +
                      "The daemon appends nothing more. Run muniment-verify, and see docs/runbook.md#" + name);
  refuse(why);
  if (options_.written != nullptr) {
    if (const Status kept = options_.written->stop({own.size(), own.root()}); !kept)
      log_error("storing the written end", {{"error", kept.error().message}});
  }
  end(why);
}

}  // namespace muniment::store
