// What the append thread does until it knows what became of a batch. The epoch comes first, since the backend that has
// the batch may still commit it: raising it waits for that one, or fences it. Only then is the log's end a fact.
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
constexpr std::size_t reason_bytes_max = 4'096;  // as schema/event/log.resumed.json has it

}  // namespace

// Answers with what is certain; `unknown` and `fenced` only where the thread has ended.
CommitResult Appender::Impl::write(const AppendBatch& batch, const std::function<void()>& meanwhile) {
  // A gap or an overlap would be in the log for ever: whoever numbered wrongly writes nothing more.
  if (batch.first_seq() != last_committed_.seq + 1) {
    end(Error(Errc::system_error, "the batch begins at " + std::to_string(batch.first_seq()) + ", the log ends at " +
                                      std::to_string(last_committed_.seq) + ": please report this"));
    if (owner->on_fatal) owner->on_fatal(*ended_);
    return {CommitOutcome::fenced};
  }
  if (ended_ || (!owned_ && recover_own_end() != Standing::ours)) return {CommitOutcome::fenced};
  // Before Postgres has the COMMIT, which it carries out also when the daemon is killed at that moment.
  const auto note_written = [&] {
    if (options_.written != nullptr) options_.written->note(committed_edge_, batch.edge());
  };
  CommitResult result = connection_.commit(batch.rows(), epoch_, options_.commit_deadline, {note_written, meanwhile});
  if (result.outcome == CommitOutcome::committed) return result;
  give_back(next_);  // it stands on what may not be there
  for (bool partition_made = false;;) {
    switch (result.outcome) {
      case CommitOutcome::committed:
      case CommitOutcome::rolled_back: return result;
      case CommitOutcome::refused: return refused(std::move(result));
      case CommitOutcome::rows_lost:
        stop_for("tables_changed", result.message + ": somebody changed the log's tables (a trigger, say). ",
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

// Whether the batch is in, asked until that is certain. `fenced`: it is not, and may be sent again unless the thread
// has ended.
CommitResult Appender::Impl::find_out(const AppendBatch& batch, CommitResult result) {
  log_warning("append in doubt",
              {{"error", result.outcome == CommitOutcome::fenced ? "the epoch was raised" : result.message}});
  // An UPDATE of ours that Postgres came to only after we had given it up fences us, too: the head says who raised the
  // epoch.
  for (;;) {
    owned_ = false;
    const Standing standing = recover();
    if (standing == Standing::lost) return result;
    const Result<bool> in = is_in(batch);
    if (in) return {*in ? CommitOutcome::committed : CommitOutcome::fenced};
    if (ended_) return result;
  }
}

// For its data; but a row that stands where the batch belongs is no fault of a request's.
CommitResult Appender::Impl::refused(CommitResult result) {
  const auto last = connection_.last_row();
  if (!last) {
    owned_ = false;
    return {CommitOutcome::rolled_back, "", last.error().message};
  }
  if (*last == last_committed_) return result;
  latch(*last, committed_edge_);
  return {CommitOutcome::fenced};
}

// It is made ahead (daemon/wiring.cpp); this is for when that failed.
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
  if (!ended_) latch(last, there == wanted ? batch.edge() : committed_edge_);
  return there == wanted;
}

// Until Postgres answers and the epoch is ours again. What waits was not sent: it is refused, and that is certain; but
// an outage before this one that is not in the log yet stays owed.
Appender::Impl::Standing Appender::Impl::recover() {
  give_back(next_);
  for (milliseconds pause = retry_pause_least;; pause = std::min(pause * 2, retry_pause_most)) {
    const Obstacle obstacle = regain();
    if (ended_) return Standing::taken;
    if (obstacle.why.empty()) {
      come_back();
      return Standing::ours;
    }
    go_away(obstacle);
    std::unique_lock lock(mutex_);
    std::vector<AppendRequest> waiting = take_all();
    lock.unlock();
    keep_owed(waiting);
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
      return Standing::lost;
    }
    lock.lock();
    wake_.wait_for(lock, pause, [&] { return stopping_; });
  }
}

// With nothing in doubt. The server that is there now may be another one than was there before: a standby, say, that
// did not have what was committed last.
Appender::Impl::Standing Appender::Impl::recover_own_end() {
  for (;;) {
    const Standing standing = recover();
    if (standing != Standing::ours) return standing;
    const auto last = connection_.last_row();
    if (!last) {
      owned_ = false;
      continue;
    }
    if (*last == last_committed_) return standing;
    latch(*last, committed_edge_);
    return Standing::taken;
  }
}

Appender::Impl::Obstacle Appender::Impl::regain() {
  const Obstacle silence{"Postgres does not answer", true};
  if (!owned_) {
    locked_ = false;
    if (const Status connected = connection_.connect(connect_again_at_most); !connected) return silence;
  }
  // Before the epoch is raised: without the standbys, that would wait.
  const auto unsafe = connection_.unsafe_setting(options_.required_standbys, look_at_most);
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
    owned_ = true;
  }
  hold_lock();
  return {};
}

// The session before this one may not have ended yet, and then it still holds it.
void Appender::Impl::hold_lock() {
  if (locked_) return;
  const auto locked = connection_.try_lock();
  locked_ = locked && *locked;
  owned_ = locked.ok();
}

void Appender::Impl::go_away(const Obstacle& obstacle) {
  std::lock_guard lock(mutex_);
  if (published_.away != obstacle.why) log_warning("nothing is appended for now", {{"error", obstacle.why}});
  if (published_.away.empty()) {
    published_.since = clock_.now();
    refused_requests_ = refused_events_ = 0;
  }
  published_.away = obstacle.why;
  published_.silent = obstacle.silent;
}

// An outage leaves an event: from when to when nothing was taken, and what was refused meanwhile.
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
  log_info("appends are taken again", {{"epoch", epoch_}});
  pending_.push_front(owed_event("log.resumed", std::move(body).text()));
}

// From here on nothing is numbered and nothing is sent.
void Appender::Impl::end(Error why) {
  log_error("the append thread ends", {{"code", name_of(why.code)}, {"error", why.message}});
  std::lock_guard lock(mutex_);
  ended_ = std::move(why);
}

void Appender::Impl::fenced_off() {
  end(Error(Errc::unavailable, "fenced: another daemon has taken over log " + std::to_string(options_.log_no)));
  if (owner->on_fatal) owner->on_fatal(*ended_);
}

void Appender::Impl::latch(const LastRow& last, const events::MerkleEdge& own) {
  if (last.seq + 1 < own.size()) {
    return stop_for("log_rolled_back",
                    "the log ends at " + std::to_string(last.seq) + ", and this daemon wrote up to " +
                        std::to_string(own.size() - 1) +
                        ": Postgres is an older copy of itself, or somebody removed events. ",
                    own);
  }
  stop_for("another_writer",
           "somebody else writes to the log: it ends at " + std::to_string(last.seq) +
               " with an event that is not this daemon's, which wrote up to " + std::to_string(own.size() - 1) + ". ",
           own);
}

// `own`: what this daemon wrote. It is kept as where it stopped, so that no start takes in what is behind it.
void Appender::Impl::stop_for(std::string_view code, std::string_view what, const events::MerkleEdge& own) {
  const std::string name(code);
  const Error why(Errc::system_error,
                  name + ": " + std::string(what) +
                      "Nothing is appended any more. Run muniment-verify, and see docs/runbook.md#" + name);
  refuse(why);
  if (options_.written != nullptr) {
    if (const Status kept = options_.written->stop({own.size(), own.root()}); !kept)
      log_error("keeping what was written last", {{"error", kept.error().message}});
  }
  end(why);
}

}  // namespace muniment::store
