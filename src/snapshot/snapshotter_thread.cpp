// Implements the snapshotter's thread: it follows the log by position, schedules the snapshots of the runs, and takes
// those that are due.
#include <algorithm>

#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "base/process/thread.hpp"
#include "snapshot/snapshotter_impl.hpp"
#include "store/tables/follower.hpp"

namespace muniment::snapshot {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view follower_name = "snapshot";
// One wake-up for each commit of a busy log would cost more than the fold, so the thread collects a batch.
constexpr auto gathering = 20ms;
constexpr auto longest_sleep = 60s;
constexpr auto position_interval = 1s;
constexpr auto away_pause = 1s;
constexpr auto look_again_after = 1s;

}  // namespace

void Snapshotter::Impl::start() {
  thread_ = named_thread("snapshotter", [this] { follow(); });
}

void Snapshotter::Impl::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    called_ = true;
  }
  changed_.notify_all();
  tail_.wake();
  if (thread_.joinable()) {
    reader_.connection().interrupt();
    thread_.join();
  }
}

void Snapshotter::Impl::flush(std::chrono::milliseconds at_most) {
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  flush_until_ = std::chrono::steady_clock::now() + at_most;
  called_ = true;
  lock.unlock();
  changed_.notify_all();
  tail_.wake();
  lock.lock();
  changed_.wait_for(lock, at_most, [&] { return !flush_until_ || stopping_; });
}

void Snapshotter::Impl::follow() {
  while (true) {
    tail_.wait(position_, until_due(), called_);
    std::optional<Monotonic> flush_until;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) break;
      flush_until = flush_until_;
    }
    if (tail_.closed() && !flush_until) rest(away_pause);
    if (!flush_until) rest(gathering);
    while (true) {
      const auto more = follow_batch();
      set_problem(more ? std::string() : more.error().message);
      if (!more) rest(away_pause);
      take_due(false, {});
      if (!more || !*more) break;
    }
    if (flush_until) {
      take_all(*flush_until);
    }
    finish_files();
    keep_position(flush_until.has_value());
    if (flush_until) {
      const std::lock_guard lock(mutex_);
      flush_until_.reset();
      called_ = stopping_;
      changed_.notify_all();
    }
  }
  finish_files();
}

void Snapshotter::Impl::take_all(Monotonic until) {
  // Two rounds: events may have followed a snapshot that was in flight in the first one.
  for (int round = 0; round < 2; ++round) {
    take_due(true, "stopping");
    std::unique_lock lock(live_->mutex);
    live_->snapshot_answered.wait_until(lock, until, [&] { return live_->in_flight == 0; });
    if (live_->due.empty()) return;
  }
}

std::chrono::milliseconds Snapshotter::Impl::until_due() {
  const Monotonic now = clock_.monotonic();
  Monotonic wake = now + longest_sleep;
  if (kept_position_ != position_) wake = std::min(wake, kept_at_ + position_interval);
  const std::lock_guard lock(live_->mutex);
  if (!live_->due.empty()) wake = std::min(wake, live_->due.begin()->first);
  return std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(wake - now));
}

std::string Snapshotter::Impl::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void Snapshotter::Impl::set_problem(std::string text) {
  const std::lock_guard lock(mutex_);
  if (!text.empty() && text != problem_) log_warning("the snapshotter is blocked", {{"error", text}});
  problem_ = std::move(text);
}

// Sleeps unless a stop or a flush is requested.
void Snapshotter::Impl::rest(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return called_.load(); });
}

// Returns true if there may be more events.
Result<bool> Snapshotter::Impl::follow_batch() {
  if (position_ < 0) {
    ASSIGN_OR_RETURN(const std::int64_t kept, reader_.follower_position(follower_name));
    position_ = kept_position_ = kept;
  }
  const std::int64_t from = position_;
  std::vector<store::EventPtr> held;
  std::vector<events::Event> read;
  std::vector<std::pair<std::int64_t, std::vector<const events::Event*>>> by_run;
  std::unordered_map<std::int64_t, std::size_t> index;
  const auto add = [&](const events::Event& event) {
    if (event.run_no == 0) return;  // _log has no state
    const auto [place, fresh] = index.try_emplace(event.run_no, by_run.size());
    if (fresh) by_run.push_back({event.run_no, {}});
    by_run[place->second].second.push_back(&event);
  };
  std::int64_t next = from;
  if (auto tail = tail_.read(from, events_per_batch)) {
    held = *std::move(tail);
    for (const store::EventPtr& event : held) add(*event);
    if (!held.empty()) next = held.back()->seq + 1;
  } else if (const std::int64_t end = tail_.next_seq(); from < end) {
    store::EventFilter filter;
    filter.from_seq = from;
    filter.to_seq = end - 1;
    ASSIGN_OR_RETURN(read, reader_.events(filter, events_per_batch));
    for (const events::Event& event : read) add(event);
    if (!read.empty()) next = read.back().seq + 1;
  }
  for (const auto& [run_no, events] : by_run) RETURN_IF_ERROR(follow_run(run_no, events, read.empty()));
  position_ = next;
  {
    const std::lock_guard lock(live_->mutex);
    if (live_->state_bytes > options_.states_bytes_max) live_->trim(options_.states_bytes_max);
  }
  return next > from && tail_.next_seq() > next;
}

// Events that were read from the table are counted only: `load` holds them against the log.
Status Snapshotter::Impl::follow_run(std::int64_t run_no, const std::vector<const events::Event*>& events,
                                     bool from_tail) {
  std::shared_ptr<LiveRun> run;
  {
    const std::lock_guard lock(live_->mutex);
    run = live_->find_or_add(run_no, events.front()->run_id);
  }
  const std::lock_guard run_lock(run->mutex);
  RETURN_IF_ERROR(look_up(*run, *events.front()));
  std::int64_t changes = 0;
  bool ended = false;
  for (const events::Event* event : events) {
    ended = ended || event->type == "run.ended";
    if (run->state && event->seq <= run->through_seq) continue;
    if (!from_tail) run->state.reset();
    if (!run->state) {
      changes += event->type != "snapshot.taken" ? 1 : 0;
      continue;
    }
    if (const Status applied = advance(*run, *event, reader_); !applied) {
      if (is_transient(applied.error().code)) return applied;
      log_error("state lost",
                {{"run_id", run->run_id}, {"seq", std::to_string(event->seq)}, {"error", applied.error().message}});
      run->state.reset();  // rehydrate reports the error to callers
    }
  }
  changes += std::exchange(run->uncounted, 0);
  const std::lock_guard lock(live_->mutex);
  run->pace.changes += changes;
  live_->set_state_bytes(*run, run->state ? estimate(*run->state) : 0);
  if (run->pace.changes == 0) return success();
  if (!run->pace.due) live_->set_due(*run, clock_.monotonic() + std::chrono::seconds(options_.seconds_between));
  if (ended) {
    live_->urgent.emplace_back(run_no, "ended");
  } else if (run->pace.changes >= options_.events_between && !run->pace.in_flight) {
    live_->urgent.emplace_back(run_no, "events");
  }
  return success();
}

// Initializes a run at its first event here. A run that starts with this event gets its state at once; for an older
// one, the distance to its last snapshot is read.
Status Snapshotter::Impl::look_up(LiveRun& run, const events::Event& first) {
  {
    const std::lock_guard lock(live_->mutex);
    if (run.pace.known) return success();
  }
  std::optional<store::SnapshotRow> newest;
  if (first.run_seq == 0) {
    run.state.emplace();
  } else {
    ASSIGN_OR_RETURN(const std::vector<store::SnapshotRow> rows, reader_.snapshots(run.run_no, std::nullopt, 1));
    if (!rows.empty()) newest = rows.front();
  }
  const std::lock_guard lock(live_->mutex);
  run.pace.known = true;
  if (newest) run.pace.newest_row = newest->seq;
  run.pace.changes += std::max<std::int64_t>(0, first.run_seq - 1 - (newest ? newest->run_seq : -1));
  return success();
}

void Snapshotter::Impl::take_due(bool all, std::string_view reason_for_all) {
  std::vector<std::pair<std::shared_ptr<LiveRun>, std::string_view>> wanted;
  {
    const Monotonic now = clock_.monotonic();
    const std::lock_guard lock(live_->mutex);
    const auto want = [&](std::int64_t run_no, std::string_view reason) {
      const auto found = live_->runs.find(run_no);
      if (found != live_->runs.end()) wanted.emplace_back(found->second, reason);
    };
    for (const auto& [run_no, reason] : live_->urgent) want(run_no, reason);
    live_->urgent.clear();
    for (const auto& [when, run_no] : live_->due) {
      if (!all && when > now) break;
      want(run_no, all ? reason_for_all : "time");
    }
    for (const auto& [run, reason] : wanted) live_->set_due(*run, std::nullopt);
  }
  for (const auto& [run, reason] : wanted) {
    const Status taken = take_now(run, reason);
    if (taken) continue;
    log_warning("snapshot not taken",
                {{"run_id", run->run_id}, {"reason", std::string(reason)}, {"error", taken.error().message}});
    const std::lock_guard lock(live_->mutex);
    live_->set_due(*run, clock_.monotonic() + std::max<std::chrono::seconds>(
                                                  retry_after, std::chrono::seconds(options_.seconds_between)));
  }
}

Status Snapshotter::Impl::take_now(const std::shared_ptr<LiveRun>& run, std::string_view reason) {
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> target,
                   directory_.find_or_load(run->run_id, [&] { return reader_.load_run(run->run_id); }));
  if (!target) return Error(Errc::not_found, "no run " + run->run_id);
  std::optional<Taking> taking;
  {
    const std::lock_guard lock(run->mutex);
    RETURN_IF_ERROR(bring_up_to_date(*run, reader_));
    ASSIGN_OR_RETURN(taking, begin(run, target, reason, events::daemon_actor));
  }
  if (!taking) {  // a snapshot is in flight: retry after its answer
    const std::lock_guard lock(live_->mutex);
    live_->set_due(*run, clock_.monotonic() + look_again_after);
    return success();
  }
  if (!taking->request) return success();
  FAILPOINT("snapshot.before_append");
  taking->request->done = [ticket = taking->ticket](const Result<std::vector<events::Receipt>>& result) {
    if (result) {
      ticket->committed();
      return;
    }
    log_warning("snapshot not appended", {{"error", result.error().message}});
    if (result.error().outcome != "unknown") ticket->refused();
  };
  Status submitted = appender_.submit(*std::move(taking->request));
  if (!submitted) taking->ticket->refused();
  return submitted;
}

// Removes staging names after the commit, or both names after a refusal; never on the append thread.
void Snapshotter::Impl::finish_files() {
  std::vector<AnsweredFile> files;
  {
    const std::lock_guard lock(live_->mutex);
    files.swap(live_->files);
  }
  for (const AnsweredFile& answered : files) {
    answered.committed ? files_.committed(answered.file.artifact_id) : files_.abandon(answered.file);
  }
}

void Snapshotter::Impl::keep_position(bool now) {
  const Monotonic at = clock_.monotonic();
  if (!now && at < kept_at_ + position_interval) return;
  kept_at_ = at;
  {
    const std::lock_guard lock(live_->mutex);
    live_->trim(options_.states_bytes_max);
  }
  if (kept_position_ == position_) return;
  if (!store::keep_position(reader_.connection(), options_.place.log_no, follower_name, position_))
    return;  // retried in a second
  kept_position_ = position_;
}

}  // namespace muniment::snapshot
