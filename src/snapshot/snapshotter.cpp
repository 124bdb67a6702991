#include "snapshot/snapshotter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "base/metrics.hpp"
#include "base/process/failpoint.hpp"
#include "snapshot/snapshotter_impl.hpp"

namespace muniment::snapshot {
namespace {

Error still_appending(std::string_view run_id) {
  Error error(Errc::unavailable, "another snapshot of " + std::string(run_id) + " is still being appended. Try again.");
  error.retry_after_ms = 1'000;
  return error;
}

}  // namespace

Status Snapshotter::Impl::load(LiveRun& run, store::Reader& reader) {
  while (true) {
    std::uint64_t answered = 0;
    {
      const std::lock_guard lock(live_->mutex);
      answered = run.pace.answered;
    }
    // The query sees all events that are committed now; later ones are in the tail.
    const std::int64_t committed = tail_.next_seq() - 1;
    ASSIGN_OR_RETURN(Rehydrated had, snapshot::rehydrate(reader, files_, run.run_no));
    const std::lock_guard lock(live_->mutex);
    Pace& pace = run.pace;
    // A snapshot answered in the meantime may be missing from the rows that were read, and would be taken again.
    if (pace.answered != answered) continue;
    pace.last.reset();
    if (had.snapshot) {
      const store::SnapshotRow& row = *had.snapshot;
      pace.last = TakenSnapshot{row.seq, row.run_seq, row.state_hash, row.size_bytes, row.artifact_id};
    }
    pace.newest_row = had.newest_row;
    if (!pace.in_flight) pace.changes = had.events_applied;
    pace.known = true;
    pace.in_doubt = false;
    pace.used = ++live_->turn;
    run.through_seq = std::max(had.through_seq, committed);
    run.state = std::move(had.state);
    run.uncounted = 0;
    live_->set_state_bytes(run, estimate(*run.state));
    return success();
  }
}

Status Snapshotter::Impl::advance(LiveRun& run, const events::Event& event, store::Reader& reader) {
  const std::int64_t before = run.state->seq();
  RETURN_IF_ERROR(apply_event(*run.state, event, reader, files_));
  run.through_seq = event.seq;
  run.uncounted += run.state->seq() != before ? 1 : 0;
  return success();
}

Status Snapshotter::Impl::bring_up_to_date(LiveRun& run, store::Reader& reader) {
  bool look_again = !run.state.has_value();
  {
    const std::lock_guard lock(live_->mutex);
    // Without `last`, this state may have been stored before, which only the rows show.
    look_again = look_again || run.pace.in_doubt || (!run.pace.last && run.pace.newest_row);
  }
  if (look_again) RETURN_IF_ERROR(load(run, reader));
  const std::int64_t until = tail_.next_seq();
  for (std::int64_t from = std::max(run.through_seq + 1, position_.load()); from < until;) {
    const auto batch = tail_.read(from, events_per_batch);
    if (!batch) {
      const auto applied = apply_events_after(reader, files_, run.run_no, std::nullopt, *run.state, run.through_seq);
      if (!applied) return applied.error();
      run.uncounted += *applied;
      run.through_seq = std::max(run.through_seq, until - 1);
      return success();
    }
    for (const store::EventPtr& event : *batch) {
      if (event->run_no == run.run_no && event->seq > run.through_seq) {
        RETURN_IF_ERROR(advance(run, *event, reader));
      }
    }
    from = batch->back()->seq + 1;
    run.through_seq = std::max(run.through_seq, from - 1);
  }
  return success();
}

// Returns a snapshot of the current state that is in the log or must be appended; nullopt if one is being appended.
Result<std::optional<Taking>> Snapshotter::Impl::begin(const std::shared_ptr<LiveRun>& run,
                                                       const std::shared_ptr<store::Run>& target,
                                                       std::string_view reason, std::string_view actor) {
  const std::int64_t seq = run->state->seq();
  if (seq < 0) return Error(Errc::not_found, "run " + run->run_id + " has no events");
  std::int64_t changes = 0;
  {
    const std::lock_guard lock(live_->mutex);
    Pace& pace = run->pace;
    if (pace.in_flight) return std::optional<Taking>();
    if (pace.last && pace.last->seq == seq) {
      pace.changes = run->uncounted = 0;
      live_->set_due(*run, std::nullopt);
      return std::optional<Taking>(Taking{*pace.last, std::nullopt, nullptr});
    }
    if (pace.newest_row == seq) {
      return Error(
          Errc::conflict,
          "the snapshot of " + run->run_id + " at seq " + std::to_string(seq) +
              " was erased or is damaged, and no other can be taken before the run's next event. The run can still be rehydrated.");
    }
  }
  const Monotonic began = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(BuiltSnapshot built, build_snapshot(*run->state, target, reason, actor, clock_, files_));
  metrics::process().snapshot_seconds.record(std::chrono::steady_clock::now() - began);
  Taking taking{built.taken, std::move(built.request), nullptr};
  {
    const std::lock_guard lock(live_->mutex);
    changes = std::exchange(run->pace.changes, 0) + std::exchange(run->uncounted, 0);
    run->pace.in_flight = true;
    ++live_->in_flight;
    live_->set_due(*run, std::nullopt);
  }
  taking.ticket = make_ticket(live_, run, std::move(built), changes, clock_.monotonic() + retry_after);
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
    if (live_->snapshot_answered.wait_until(lock, deadline, [&] { return !run->pace.in_flight; })) continue;
    return still_appending(target->run_id);
  }
}

Result<store::CheckedPatches> Snapshotter::Impl::check_patches(store::Reader& reader, const store::Run& target,
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
  store::CheckedPatches checked;
  checked.run_seq = trial.run_seq();
  events::Event event;  // with the expected body, so that the next patch is checked against its result
  event.type = "state.patched";
  event.run_id = target.run_id;
  event.seq = trial.seq();
  std::size_t spilled_bytes = 0;
  for (std::string_view body : bodies) {
    event.body = std::string(body);
    ++event.seq;
    std::string patch;
    if (const std::string artifact_id = events::spilled_patch_of(event); !artifact_id.empty()) {
      auto read = read_spilled_patch(target.run_id, artifact_id, reader, files_);
      if (!read && is_transient(read.error().code)) return std::move(read).error();
      if (!read)
        return Error(Errc::not_found,
                     "ref: no artifact " + artifact_id + " of this run can be read. Put it first: artifact.put");
      patch = *std::move(read);
      spilled_bytes += patch.size();
      if (spilled_bytes > limits::working_state_bytes_max) {
        return Error(Errc::too_large, fmt::format("the spilled patches of the request are over {} bytes together. Send "
                                                  "them one after the other.",
                                                  limits::working_state_bytes_max));
      }
    }
    RETURN_IF_ERROR(trial.check_patch(body, patch));
    trial.apply(event, patch);
    checked.patches.push_back({*std::move(event.body), std::move(patch)});
  }
  checked.after = trial.working();
  return checked;
}

namespace {

class RunHold final : public Hold {
 public:
  RunHold(std::shared_ptr<LiveRuns> live, std::shared_ptr<LiveRun> run, std::unique_lock<std::mutex> lock)
      : live_(std::move(live)), run_(std::move(run)), lock_(std::move(lock)) {}

  void forget() override {
    run_->state.reset();
    run_->through_seq = -1;
    const std::lock_guard lock(live_->mutex);
    ++live_->erasures;  // a state from an earlier rehydration is no longer stored
    run_->pace.last.reset();
    run_->pace.in_doubt = true;
    live_->set_state_bytes(*run_, 0);
  }

 private:
  const std::shared_ptr<LiveRuns> live_;
  const std::shared_ptr<LiveRun> run_;
  const std::unique_lock<std::mutex> lock_;
};

}  // namespace

Result<std::unique_ptr<Hold>> Snapshotter::Impl::hold(std::int64_t run_no, std::string_view run_id, Deadline deadline) {
  while (true) {
    std::shared_ptr<LiveRun> run;
    {
      const std::lock_guard lock(live_->mutex);
      run = live_->find_or_add(run_no, run_id);
    }
    std::unique_lock held(run->mutex);
    std::unique_lock lock(live_->mutex);
    if (!run->pace.in_flight) {
      lock.unlock();
      return std::unique_ptr<Hold>(new RunHold(live_, std::move(run), std::move(held)));
    }
    held.unlock();
    if (live_->snapshot_answered.wait_until(lock, deadline, [&] { return !run->pace.in_flight; })) continue;
    return still_appending(run_id);
  }
}

Result<Rehydrated> Snapshotter::Impl::rehydrated(store::Reader& reader, std::int64_t run_no,
                                                 std::optional<std::int64_t> asof_seq) {
  std::uint64_t erasures = 0;
  {
    const std::lock_guard lock(live_->mutex);
    erasures = live_->erasures;
  }
  ASSIGN_OR_RETURN(Rehydrated had, snapshot::rehydrate(reader, files_, run_no, asof_seq));
  had.erasures = erasures;
  return had;
}

Result<std::optional<Taking>> Snapshotter::Impl::store(const Rehydrated& had, const std::shared_ptr<store::Run>& target,
                                                       std::string_view reason, std::string_view actor,
                                                       Deadline deadline) {
  if (had.snapshot && had.snapshot_seq == had.state.seq()) {
    const store::SnapshotRow& row = *had.snapshot;
    return std::optional(
        Taking{{row.seq, row.run_seq, row.state_hash, row.size_bytes, row.artifact_id}, std::nullopt, nullptr});
  }
  FAILPOINT("snapshot.before_store");
  std::shared_ptr<LiveRun> run;
  {
    const std::lock_guard lock(live_->mutex);
    run = live_->find_or_add(target->view().run_no, target->run_id);
  }
  std::unique_lock held(run->mutex);  // blocks erasures of this run
  {
    std::unique_lock lock(live_->mutex);
    if (live_->erasures != had.erasures) return std::optional<Taking>();
    // A snapshot of this state was taken since it was read, and a state has only one snapshot.
    if (run->pace.last && run->pace.last->seq == had.state.seq())
      return std::optional(Taking{*run->pace.last, std::nullopt, nullptr});
    if (run->pace.in_flight) {
      held.unlock();
      if (live_->snapshot_answered.wait_until(lock, deadline, [&] { return !run->pace.in_flight; }))
        return std::optional<Taking>();
      return still_appending(target->run_id);
    }
  }
  ASSIGN_OR_RETURN(BuiltSnapshot built, build_snapshot(had.state, target, reason, actor, clock_, files_));
  {
    const std::lock_guard lock(live_->mutex);
    run->pace.in_flight = true;
    ++live_->in_flight;
  }
  return std::optional(
      Taking{built.taken, std::move(built.request), make_file_ticket(live_, run, std::move(built.file))});
}

Snapshotter::Snapshotter(SnapshotterOptions options, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
                         store::Tail& tail, store::ArtifactFiles& files)
    : impl_(std::make_unique<Impl>(std::move(options), clock, appender, runs, tail, files)) {}
Snapshotter::~Snapshotter() { stop(); }

void Snapshotter::start() { impl_->start(); }
void Snapshotter::stop() { impl_->stop(); }
void Snapshotter::flush(std::chrono::milliseconds at_most) { impl_->flush(at_most); }
std::int64_t Snapshotter::position() const { return impl_->position(); }
std::string Snapshotter::problem() const { return impl_->problem(); }

Result<Taking> Snapshotter::take(store::Reader& reader, const std::shared_ptr<store::Run>& run, std::string_view reason,
                                 std::string_view actor, Deadline deadline) {
  return impl_->take(reader, run, reason, actor, deadline);
}

Result<std::unique_ptr<Hold>> Snapshotter::hold(std::int64_t run_no, std::string_view run_id, Deadline deadline) {
  return impl_->hold(run_no, run_id, deadline);
}

Result<Rehydrated> Snapshotter::rehydrate(store::Reader& reader, std::int64_t run_no,
                                          std::optional<std::int64_t> asof_seq) {
  return impl_->rehydrated(reader, run_no, asof_seq);
}

Result<std::optional<Taking>> Snapshotter::store(const Rehydrated& had, const std::shared_ptr<store::Run>& run,
                                                 std::string_view reason, std::string_view actor, Deadline deadline) {
  return impl_->store(had, run, reason, actor, deadline);
}

Result<store::CheckedPatches> Snapshotter::check_patches(store::Reader& reader, const store::Run& run,
                                                         const std::vector<std::string_view>& bodies) {
  return impl_->check_patches(reader, run, bodies);
}

}  // namespace muniment::snapshot
