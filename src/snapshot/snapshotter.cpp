#include "snapshot/snapshotter.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/failpoint.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "snapshot/live_run.hpp"

namespace muniment::snapshot {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t events_per_batch = 1'024;
// Behind a busy log one wake-up a commit would cost more than the fold: let a batch gather.
constexpr auto gathering = 20ms;
constexpr auto longest_sleep = 60s;
constexpr auto position_interval = 1s;
constexpr auto look_again_after = 1s;
constexpr auto retry_after = 5s;

// A state's bytes in memory, by estimate: trees cost several times their text.
std::size_t estimate(const events::State& state) { return 4'096 + 6 * state.working_bytes(); }

class LiveTicket final : public Ticket {
 public:
  LiveTicket(std::shared_ptr<LiveRuns> live, std::shared_ptr<LiveRun> run, BuiltSnapshot built, std::int64_t changes, Monotonic retry_at)
      : live_(std::move(live)), run_(std::move(run)), taken_(built.taken), file_(std::move(built.file)), changes_(changes), retry_at_(retry_at) {}

  ~LiveTicket() override {
    if (!answered_) settle(Outcome::unknown);
  }
  void committed() override { settle(Outcome::committed); }
  void refused() override { settle(Outcome::refused); }

 private:
  enum class Outcome { committed, refused, unknown };

  void settle(Outcome outcome) {
    answered_ = true;
    {
      const std::lock_guard lock(live_->mutex);
      Pace& pace = run_->pace;
      pace.in_flight = false;
      --live_->in_flight;
      if (outcome == Outcome::committed) {
        pace.last = taken_;
        pace.newest_row = taken_.seq;
      } else {
        pace.in_doubt = true;  // it may also have been refused because its row is there
        pace.changes += changes_;
        live_->set_due(*run_, retry_at_);
      }
      if (file_ && outcome != Outcome::unknown) live_->files.push_back({*file_, outcome == Outcome::committed});
    }
    live_->settled.notify_all();
  }

  const std::shared_ptr<LiveRuns> live_;
  const std::shared_ptr<LiveRun> run_;
  const TakenSnapshot taken_;
  const std::optional<store::StoredFile> file_;
  const std::int64_t changes_;
  const Monotonic retry_at_;
  bool answered_ = false;
};

// For a snapshot that no pace waits for: only its file has to be settled.
class FileTicket final : public Ticket {
 public:
  FileTicket(std::shared_ptr<LiveRuns> live, std::optional<store::StoredFile> file) : live_(std::move(live)), file_(std::move(file)) {}
  void committed() override { settle(true); }
  void refused() override { settle(false); }

 private:
  void settle(bool in) {
    const std::lock_guard lock(live_->mutex);
    if (file_) live_->files.push_back({*file_, in});
  }

  const std::shared_ptr<LiveRuns> live_;
  const std::optional<store::StoredFile> file_;
};

}  // namespace

class Snapshotter::Impl {
 public:
  Impl(SnapshotterOptions options, Clock& clock, store::Appender& appender, store::RunDirectory& runs, store::Tail& tail,
       store::ArtifactFiles& files)
      : options_(std::move(options)), clock_(clock), appender_(appender), directory_(runs), tail_(tail), files_(files),
        reader_(options_.uri, options_.log_no) {}

  void start(std::int64_t next_seq);
  void stop();
  void flush(std::chrono::milliseconds at_most);
  std::int64_t position() const { return position_.load(); }
  Result<Taking> take(store::Reader& reader, const std::shared_ptr<store::Run>& run, std::string_view reason,
                      std::string_view actor, Deadline deadline);
  Status check_patches(store::Reader& reader, const store::Run& run, const std::vector<std::string_view>& bodies);
  Result<Taking> store(const Rehydrated& had, const std::shared_ptr<store::Run>& run, std::string_view reason,
                       std::string_view actor);

 private:
  // The thread
  void follow();
  std::chrono::milliseconds until_due();
  void rest(std::chrono::milliseconds at_most);
  Result<bool> follow_batch();
  Status follow_run(std::int64_t run_no, const std::vector<const events::Event*>& events);
  Status look_up(LiveRun& run, const events::Event& first);
  void take_due(bool all, std::string_view reason_for_all);
  void take_all(Monotonic until);
  Status take_now(const std::shared_ptr<LiveRun>& run, std::string_view reason);
  void settle_files();
  void keep_position(bool now);

  // With run.mutex held
  Status bring_up_to_date(LiveRun& run, store::Reader& reader);
  Status load(LiveRun& run, store::Reader& reader);
  Result<std::optional<Taking>> begin(const std::shared_ptr<LiveRun>& run, const std::shared_ptr<store::Run>& target,
                                      std::string_view reason, std::string_view actor);

  const SnapshotterOptions options_;
  Clock& clock_;
  store::Appender& appender_;
  store::RunDirectory& directory_;
  store::Tail& tail_;
  store::ArtifactFiles& files_;
  store::Reader reader_;                    // the thread's

  const std::shared_ptr<LiveRuns> live_ = std::make_shared<LiveRuns>();
  std::atomic<std::int64_t> position_{0};   // events below it were applied to every state held
  std::int64_t kept_position_ = -1;
  Monotonic kept_at_{};

  std::thread thread_;
  std::atomic<bool> called_{false};         // stop or flush was asked for
  std::mutex mutex_;                        // for the three below
  std::condition_variable changed_;
  bool stopping_ = false;
  std::optional<Monotonic> flush_until_;
};

// ---- The thread

void Snapshotter::Impl::start(std::int64_t next_seq) {
  position_ = next_seq;
  thread_ = std::thread([this] { follow(); });
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
    if (tail_.closed() && !flush_until) rest(1'000ms);
    if (!flush_until) rest(gathering);
    while (true) {
      const auto more = follow_batch();
      if (!more) {
        log_warning("snapshotter waits", {{"error", more.error().message}});
        rest(1'000ms);
      }
      take_due(false, {});
      if (!more || !*more) break;
    }
    if (flush_until) {
      take_all(*flush_until);
    }
    settle_files();
    keep_position(flush_until.has_value());
    if (flush_until) {
      const std::lock_guard lock(mutex_);
      flush_until_.reset();
      called_ = stopping_;
      changed_.notify_all();
    }
  }
  settle_files();
}

void Snapshotter::Impl::take_all(Monotonic until) {
  // Twice: what was on its way the first time may have been overtaken by events.
  for (int round = 0; round < 2; ++round) {
    take_due(true, "stopping");
    std::unique_lock lock(live_->mutex);
    live_->settled.wait_until(lock, until, [&] { return live_->in_flight == 0; });
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

// Sleeps, but not through a stop or a flush.
void Snapshotter::Impl::rest(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return called_.load(); });
}

// True: there may be more.
Result<bool> Snapshotter::Impl::follow_batch() {
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
  } else {
    store::EventFilter filter;
    filter.from_seq = from;
    ASSIGN_OR_RETURN(read, reader_.events(filter, events_per_batch));
    for (const events::Event& event : read) add(event);
    if (!read.empty()) next = read.back().seq + 1;
  }
  for (const auto& [run_no, events] : by_run) RETURN_IF_ERROR(follow_run(run_no, events));
  position_ = next;
  {
    const std::lock_guard lock(live_->mutex);
    if (live_->state_bytes > options_.states_bytes_max) live_->trim(options_.states_bytes_max);
  }
  return next > from && tail_.next_seq() > next;
}

Status Snapshotter::Impl::follow_run(std::int64_t run_no, const std::vector<const events::Event*>& events) {
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
    if (!run->state) {
      changes += event->type != "snapshot.taken" ? 1 : 0;
      continue;
    }
    if (event->seq <= run->through_seq) continue;
    const std::int64_t before = run->state->seq();
    if (const Status applied = apply_event(*run->state, *event, reader_, files_); !applied) {
      if (is_transient(applied.error().code)) return applied;
      log_error("state lost", {{"run_id", run->run_id}, {"seq", std::to_string(event->seq)}, {"error", applied.error().message}});
      run->state.reset();  // rehydrate will say so to whoever asks
    } else {
      run->through_seq = event->seq;
      changes += run->state->seq() != before ? 1 : 0;
    }
  }
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

// A run that is met for the first time: one that begins here has its state from now on, of another
// one it is asked how far its last snapshot is behind.
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
    log_warning("snapshot not taken", {{"run_id", run->run_id}, {"reason", std::string(reason)}, {"error", taken.error().message}});
    const std::lock_guard lock(live_->mutex);
    live_->set_due(*run, clock_.monotonic() + std::max<std::chrono::seconds>(retry_after, std::chrono::seconds(options_.seconds_between)));
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
  if (!taking) {  // one is on its way: look again when it has arrived
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

// Staging names go after the commit, both names after a refusal; never on the append thread.
void Snapshotter::Impl::settle_files() {
  std::vector<SettledFile> files;
  {
    const std::lock_guard lock(live_->mutex);
    files.swap(live_->files);
  }
  for (const SettledFile& settled : files) {
    settled.committed ? files_.committed(settled.file.artifact_id) : files_.abandon(settled.file);
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
  if (options_.store_position && !options_.store_position(position_)) return;  // again in a second
  kept_position_ = position_;
}

// ---- States and takings

Status Snapshotter::Impl::load(LiveRun& run, store::Reader& reader) {
  // All that is committed now will be seen by the query; what comes later is in the tail.
  const std::int64_t committed = tail_.next_seq() - 1;
  ASSIGN_OR_RETURN(Rehydrated had, rehydrate(reader, files_, run.run_no));
  run.through_seq = std::max(had.through_seq, committed);
  run.state = std::move(had.state);
  const std::lock_guard lock(live_->mutex);
  Pace& pace = run.pace;
  pace.last.reset();
  if (had.snapshot) {
    const store::SnapshotRow& row = *had.snapshot;
    pace.last = TakenSnapshot{row.seq, row.run_seq, row.state_hash, row.size_bytes, row.artifact_id};
  }
  pace.newest_row = had.newest_row;
  if (!pace.known) pace.changes = had.events_applied;
  pace.known = true;
  pace.in_doubt = false;
  pace.used = ++live_->turn;
  live_->set_state_bytes(run, estimate(*run.state));
  return success();
}

Status Snapshotter::Impl::bring_up_to_date(LiveRun& run, store::Reader& reader) {
  bool look_again = !run.state.has_value();
  {
    const std::lock_guard lock(live_->mutex);
    // Without `last` it may be that this very state has been taken before: only the rows know.
    look_again = look_again || run.pace.in_doubt || (!run.pace.last && run.pace.newest_row);
  }
  if (look_again) RETURN_IF_ERROR(load(run, reader));
  const std::int64_t until = tail_.next_seq();
  for (std::int64_t from = std::max(run.through_seq + 1, position_.load()); from < until;) {
    const auto batch = tail_.read(from, events_per_batch);
    if (!batch) {
      const auto applied = apply_events_after(reader, files_, run.run_no, std::nullopt, *run.state, run.through_seq);
      if (!applied) return applied.error();
      run.through_seq = std::max(run.through_seq, until - 1);
      return success();
    }
    for (const store::EventPtr& event : *batch) {
      if (event->run_no == run.run_no && event->seq > run.through_seq) {
        RETURN_IF_ERROR(apply_event(*run.state, *event, reader, files_));
      }
    }
    from = batch->back()->seq + 1;
    run.through_seq = std::max(run.through_seq, from - 1);
  }
  return success();
}

// A snapshot of the state as it stands: one that is in the log already, or one to be appended.
// nullopt: one is being appended just now.
Result<std::optional<Taking>> Snapshotter::Impl::begin(const std::shared_ptr<LiveRun>& run,
                                                       const std::shared_ptr<store::Run>& target, std::string_view reason,
                                                       std::string_view actor) {
  const std::int64_t seq = run->state->seq();
  if (seq < 0) return Error(Errc::not_found, "run " + run->run_id + " has no events");
  std::int64_t changes = 0;
  {
    const std::lock_guard lock(live_->mutex);
    Pace& pace = run->pace;
    if (pace.in_flight) return std::optional<Taking>();
    if (pace.last && pace.last->seq == seq) {
      pace.changes = 0;
      live_->set_due(*run, std::nullopt);
      return std::optional<Taking>(Taking{*pace.last, std::nullopt, nullptr});
    }
    if (pace.newest_row == seq) {
      return Error(Errc::conflict, "the snapshot of " + run->run_id + " at seq " + std::to_string(seq) +
                                       " is damaged, and no other can be taken of the same state. It can be rehydrated all the same.");
    }
  }
  ASSIGN_OR_RETURN(BuiltSnapshot built, build_snapshot(*run->state, target, reason, actor, clock_, files_));
  Taking taking{built.taken, std::move(built.request), nullptr};
  {
    const std::lock_guard lock(live_->mutex);
    changes = std::exchange(run->pace.changes, 0);
    run->pace.in_flight = true;
    ++live_->in_flight;
    live_->set_due(*run, std::nullopt);
  }
  taking.ticket = std::make_shared<LiveTicket>(live_, run, std::move(built), changes, clock_.monotonic() + retry_after);
  return std::optional<Taking>(std::move(taking));
}

Result<Taking> Snapshotter::Impl::take(store::Reader& reader, const std::shared_ptr<store::Run>& target,
                                       std::string_view reason, std::string_view actor, Deadline deadline) {
  const std::int64_t run_no = target->view().run_no;
  if (run_no <= 0) return Error(Errc::not_found, "run " + target->run_id + " has no state");
  while (true) {
    std::shared_ptr<LiveRun> run;
    {
      const std::lock_guard lock(live_->mutex);
      run = live_->find_or_add(run_no, target->run_id);
    }
    {
      const std::lock_guard lock(run->mutex);
      RETURN_IF_ERROR(bring_up_to_date(*run, reader));
      ASSIGN_OR_RETURN(std::optional<Taking> taking, begin(run, target, reason, actor));
      if (taking) return *std::move(taking);
    }
    std::unique_lock lock(live_->mutex);
    if (live_->settled.wait_until(lock, deadline, [&] { return !run->pace.in_flight; })) continue;
    Error error(Errc::unavailable, "another snapshot of " + target->run_id + " is still being appended. Try again.");
    error.retry_after_ms = 1'000;
    return error;
  }
}

Status Snapshotter::Impl::check_patches(store::Reader& reader, const store::Run& target,
                                        const std::vector<std::string_view>& bodies) {
  const std::int64_t run_no = target.view().run_no;
  std::shared_ptr<LiveRun> run;
  {
    const std::lock_guard lock(live_->mutex);
    run = live_->find_or_add(run_no, target.run_id);
  }
  events::State trial;
  {
    const std::lock_guard lock(run->mutex);
    RETURN_IF_ERROR(bring_up_to_date(*run, reader));
    trial = *run->state;
  }
  events::Event event;  // what the body will be, so that the next one is held against its result
  event.type = "state.patched";
  event.run_id = target.run_id;
  event.seq = trial.seq();
  for (std::string_view body : bodies) {
    event.body = std::string(body);
    ++event.seq;
    std::string patch;
    if (const std::string artifact_id = events::spilled_patch_of(event); !artifact_id.empty()) {
      auto read = read_spilled_patch(target.run_id, artifact_id, reader, files_);
      if (!read && is_transient(read.error().code)) return std::move(read).error();
      if (!read) return Error(Errc::not_found, "ref: no artifact " + artifact_id + " of this run can be read. Put it first: artifact.put");
      patch = *std::move(read);
    }
    RETURN_IF_ERROR(trial.check_patch(body, patch));
    trial.apply(event, patch);
  }
  return success();
}

Result<Taking> Snapshotter::Impl::store(const Rehydrated& had, const std::shared_ptr<store::Run>& run,
                                        std::string_view reason, std::string_view actor) {
  if (had.snapshot && had.snapshot_seq == had.state.seq()) {
    const store::SnapshotRow& row = *had.snapshot;
    return Taking{{row.seq, row.run_seq, row.state_hash, row.size_bytes, row.artifact_id}, std::nullopt, nullptr};
  }
  ASSIGN_OR_RETURN(BuiltSnapshot built, build_snapshot(had.state, run, reason, actor, clock_, files_));
  return Taking{built.taken, std::move(built.request), std::make_shared<FileTicket>(live_, std::move(built.file))};
}

// ---- The public face

Snapshotter::Snapshotter(SnapshotterOptions options, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
                         store::Tail& tail, store::ArtifactFiles& files)
    : impl_(std::make_unique<Impl>(std::move(options), clock, appender, runs, tail, files)) {}
Snapshotter::~Snapshotter() { stop(); }

void Snapshotter::start(std::int64_t next_seq) { impl_->start(next_seq); }
void Snapshotter::stop() { impl_->stop(); }
void Snapshotter::flush(std::chrono::milliseconds at_most) { impl_->flush(at_most); }
std::int64_t Snapshotter::position() const { return impl_->position(); }

Result<Taking> Snapshotter::take(store::Reader& reader, const std::shared_ptr<store::Run>& run, std::string_view reason,
                                 std::string_view actor, Deadline deadline) {
  return impl_->take(reader, run, reason, actor, deadline);
}

Result<Taking> Snapshotter::store(const Rehydrated& had, const std::shared_ptr<store::Run>& run, std::string_view reason,
                                  std::string_view actor) {
  return impl_->store(had, run, reason, actor);
}

Status Snapshotter::check_patches(store::Reader& reader, const store::Run& run, const std::vector<std::string_view>& bodies) {
  return impl_->check_patches(reader, run, bodies);
}

}  // namespace muniment::snapshot
