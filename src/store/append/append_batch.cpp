#include "store/append/append_batch.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "base/metrics.hpp"
#include "events/catalogue.hpp"
#include "events/entry.hpp"
#include "events/run_state.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t left_out = static_cast<std::size_t>(-1);

// Checks whether an event of this type may follow in a run of this status.
Status admit(const Run& run, RunStatus status, std::string_view type) {
  const bool starts = type == "run.started";
  const events::TypeInfo* info = events::find_type(type);
  const events::Admits admits = info ? info->admits : events::Admits::open_only;
  if (run.closed_log != 0) return closed_error(run);
  switch (status) {
    case RunStatus::absent:
      if (starts || run.run_id == log_run_id) return success();
      return Error(Errc::not_found, "no run " + run.run_id + ". Start it: run.start");
    case RunStatus::open:
      if (!starts && admits_open(admits)) return success();
      return Error(Errc::conflict, "run " + run.run_id + " is open already");
    case RunStatus::ended: return admits_ended(admits) ? success() : Status(ended_error(run));
    case RunStatus::halted: return admits_halted(admits) ? success() : Status(halted_error(run));
  }
  return success();
}

// Returns the type that admission checks. The artifact of a large snapshot is admitted wherever the snapshot is.
std::string_view admitted_as(const std::vector<Addressed>& items, std::size_t i) {
  const bool followed =
      i + 1 < items.size() && items[i + 1].run == items[i].run && items[i + 1].event.type == "snapshot.taken";
  return followed && items[i].event.type == "artifact.stored" ? items[i + 1].event.type : items[i].event.type;
}

Run& run_of_names(const AppendRequest& request) {
  return request.names_run ? *request.names_run : *request.events.front().run;
}

// Returns whether an event with an id that the client chose was numbered since the run was loaded.
bool may_repeat_numbered(const AppendRequest& request) {
  return std::ranges::any_of(request.events, [](const Addressed& item) {
    return !item.event.event_id_is_ours && item.run->seen.maybe_has(fingerprint(item.event.event_id));
  });
}

RunStatus status_after(RunStatus status, std::string_view type) {
  if (type == "run.started" || type == "run.resumed") return RunStatus::open;
  if (type == "run.ended") return RunStatus::ended;
  if (type == "run.halted") return RunStatus::halted;
  return status;
}

}  // namespace

std::size_t bytes_of(const AppendRequest& request) {
  std::size_t bytes = 0;
  for (const Addressed& item : request.events) bytes += item.event.body.size();
  if (!request.patches) return bytes;
  for (const CheckedPatches::Patch& patch : request.patches->patches) bytes += patch.body.size() + patch.spilled.size();
  return bytes;
}

Error requeue(AppendConflict why) {
  Error error(Errc::conflict, "the log has moved on since this request was prepared. Try again.");
  error.conflict = why;
  return error;
}

bool is_requeued(const Error& error) {
  return error.conflict != AppendConflict::none && error.conflict != AppendConflict::other_run_seq;
}

bool AppendBatch::full() const {
  return events_.size() >= limits::events_per_commit_max || bytes_ >= limits::bytes_per_commit_max;
}

bool AppendBatch::fits(const AppendRequest& request) const {
  return events_.empty() || (events_.size() + request.events.size() <= limits::events_per_commit_max &&
                             bytes_ + bytes_of(request) <= limits::bytes_per_commit_max);
}

// Returns the request for retry if its preparation is outdated, or if an earlier request of the same order was
// returned.
Status AppendBatch::requeue(const AppendRequest& request, const LogHead& log) {
  using enum AppendConflict;
  const auto give = [&](AppendConflict why) -> Status {
    if (request.order) request.order->any = true;
    return store::requeue(why);
  };
  const auto is_partly_loaded = [](const Addressed& item) {
    return !item.event.event_id_is_ours && item.run->ids_complete_from > 0;
  };
  if (!request.ids_checked && (may_repeat_numbered(request) || std::ranges::any_of(request.events, is_partly_loaded)))
    return give(maybe_duplicate);
  if (request.order && request.order->any) return give(out_of_turn);
  for (const Attachment& row : request.rows) {
    const auto* artifact = std::get_if<ArtifactRow>(&row.row);
    if (artifact == nullptr || !request.contents_asked_at) continue;
    const Run& run = *request.events[row.event_index].run;
    if (run.numbered_contents.any_since(fingerprint(artifact->step_id, artifact->hash), *request.contents_asked_at,
                                        run.head.run_seq)) {
      return give(maybe_stored);
    }
  }
  const auto is_stale = [&](const std::string& name) {
    return run_of_names(request).numbered_names.any_since(fingerprint(name), request.names_known_upto, log.next_seq);
  };
  if (std::ranges::any_of(request.names, is_stale) || std::ranges::any_of(request.names_relied_on, is_stale))
    return give(moved_on);
  if (request.erasures_seen && *request.erasures_seen != log.erasures) return give(moved_on);
  if (request.patches) {
    const Run::Head& head = request.events.front().run->head;
    if (head.patched_run_seq > request.patches->run_seq && head.working == nullptr) return give(moved_on);
  }
  return success();
}

namespace {

// A run that was stopped while Postgres was unavailable counts as halted for all events except the halt itself.
RunStatus status_in(const Addressed& item, RunStatus status) {
  return item.run->fail_stopped() && item.event.type != "run.halted" ? RunStatus::halted : status;
}

bool is_left_out(const Addressed& item, RunStatus status, bool previous_is) {
  if (item.with_previous && previous_is) return true;
  if (item.run->run_id == log_run_id) return false;
  return (item.if_open && status != RunStatus::open) ||
         (item.unless_halted && status_in(item, status) == RunStatus::halted);
}

}  // namespace

// Checks the whole request before any event is numbered, because it is accepted or refused as a whole.
Status AppendBatch::check(const AppendRequest& request, const LogHead& log) const {
  // This check is first, because an event that was already appended has its receipt, whatever the run's current state.
  RETURN_IF_ERROR(requeue(request, log));
  if (request.expected_run_seq) {
    const Run& run = *request.events.front().run;
    if (run.head.run_seq != *request.expected_run_seq) {
      Error error(Errc::conflict, "the next run_seq of " + run.run_id + " is " + std::to_string(run.head.run_seq) +
                                      ", you expected " + std::to_string(*request.expected_run_seq) + ". Read from " +
                                      std::to_string(std::min(run.head.run_seq, *request.expected_run_seq)) +
                                      ", or drop expected_run_seq.");
      error.run_id = run.run_id;
      error.conflict = AppendConflict::other_run_seq;
      return error;
    }
  }
  std::vector<std::pair<const Run*, RunStatus>> statuses;  // statuses that the request's own events lead to
  bool is_out = false;
  for (std::size_t i = 0; i < request.events.size(); ++i) {
    const Addressed& item = request.events[i];
    auto found =
        std::find_if(statuses.begin(), statuses.end(), [&](const auto& s) { return s.first == item.run.get(); });
    if (found == statuses.end()) found = statuses.insert(statuses.end(), {item.run.get(), item.run->head.status});
    is_out = is_left_out(item, found->second, is_out);
    if (is_out) continue;
    const RunStatus status = status_in(item, found->second);
    if (item.refused_halted && status == RunStatus::halted) return halted_error(*item.run);
    RETURN_IF_ERROR(admit(*item.run, status, admitted_as(request.events, i)));
    found->second = status_after(found->second, item.event.type);
  }
  return success();
}

// Returns the working state after the request's patches. Errors: those of patch_working.
Result<json::Tree> AppendBatch::patched(const AppendRequest& request) {
  const CheckedPatches& checked = *request.patches;
  const Run::Head& head = request.events.front().run->head;
  if (head.patched_run_seq <= checked.run_seq) return checked.after;
  json::Tree working = *head.working;
  for (const CheckedPatches::Patch& patch : checked.patches) {
    ASSIGN_OR_RETURN(const json::Document body, json::parse(patch.body));
    RETURN_IF_ERROR(events::patch_working(working, body.root(), patch.spilled));
  }
  return working;
}

void AppendBatch::add(AppendRequest request, LogHead& log, Time now) {
  if (!started_) {
    before_ = log;
    started_ = true;
  }
  if (const Monotonic queued = std::exchange(request.queued, {});
      queued != Monotonic()) {  // a returned request was counted before
    metrics::process().append_wait_seconds.record(std::chrono::steady_clock::now() - queued);
  }
  const auto refuse = [&](Error why) {
    refused_.push_back({std::move(request), std::move(why), requests_.size() + refused_.size()});
  };
  if (Status checked = check(request, log); !checked) return refuse(std::move(checked).error());
  std::shared_ptr<const json::Tree> working;
  if (request.patches) {
    Result<json::Tree> after = patched(request);
    if (!after) {
      // The events may be those of a request that is in flight; then its receipts are the answer.
      const bool repeats = may_repeat_numbered(request);
      if (repeats && request.order) request.order->any = true;
      return refuse(repeats ? store::requeue(AppendConflict::maybe_duplicate) : std::move(after).error());
    }
    working = std::make_shared<json::Tree>(*std::move(after));
  }
  bytes_ += bytes_of(request);
  Accepted accepted;
  accepted.receipts.reserve(request.events.size());
  bool is_out = false;
  for (Addressed& item : request.events) {
    is_out = is_left_out(item, item.run->head.status, is_out);
    if (is_out) {
      accepted.event_of.push_back(left_out);
      accepted.receipts.emplace_back().seq = -1;
      continue;
    }
    accepted.event_of.push_back(events_.size());
    accepted.receipts.push_back(number(request, item, log, now));
  }
  if (working) request.events.front().run->head.working = std::move(working);
  for (const Attachment& attachment : request.rows) {
    const events::Receipt& receipt = accepted.receipts[attachment.event_index];
    Row row = attachment.row;
    if (const auto* artifact = std::get_if<ArtifactRow>(&row)) {
      Run& run = *request.events[attachment.event_index].run;
      run.numbered_contents.add(fingerprint(artifact->step_id, artifact->hash), receipt.run_seq, run.next_run_seq());
    }
    std::visit(
        [&](auto& r) {
          if constexpr (requires { r.event_seq; }) {
            r.event_seq = receipt.seq;
          } else {
            r.seq = receipt.seq;
          }
          if constexpr (requires { r.created_at; }) r.created_at = now;
        },
        row);
    rows_.push_back(std::move(row));
  }
  for (const std::string& name : request.names) {
    run_of_names(request).numbered_names.add(fingerprint(name), log.next_seq - 1, log.next_seq);
  }
  edge_ = log.edge;
  accepted.request = std::move(request);
  requests_.push_back(std::move(accepted));
}

events::Receipt AppendBatch::number(const AppendRequest& request, Addressed& item, LogHead& log, Time now) {
  Run& run = *item.run;
  if (touched_.empty() || touched_.back().run != item.run) touched_.push_back({item.run, run.head, 0});
  if (run.head.run_no < 0) run.head.run_no = log.next_run_no++;

  events::NewEvent& fresh = item.event;
  auto event = std::make_shared<events::Event>();
  event->seq = log.next_seq++;
  event->run_no = run.head.run_no;
  event->run_id = run.run_id;
  event->run_seq = run.head.run_seq++;
  touched_.back().next_run_seq = run.head.run_seq;
  event->recorded_at = now;
  oldest_ = std::min(oldest_, now.micros);
  event->occurred_at = fresh.occurred_at;
  event->origin = fresh.origin;
  event->type = fresh.type;
  event->schema_version = fresh.schema_version;
  event->step_id = fresh.step_id;
  event->actor = item.by_daemon ? events::daemon_actor : request.actor;
  event->event_id = fresh.event_id;
  event->body_hash = fresh.body_hash;
  event->salt = fresh.salt;
  event->body = std::move(fresh.body);

  const events::EntryHashes hashes = events::hash_entry(log.log_id, *event, run.head.run_hash);
  event->run_hash = run.head.run_hash = hashes.run_hash;
  log.edge.add(hashes.leaf_hash);
  run.seen.add(fingerprint(fresh.event_id));
  const RunStatus after = status_after(run.head.status, event->type);
  if (after != run.head.status || event->type == "run.started") changes_.emplace_back(item.run, events_.size());
  run.head.status = after;
  if (event->type == "state.patched") {
    run.head.patched_run_seq = event->run_seq;
    run.head.working = nullptr;
  }

  events::Receipt receipt{event->event_id, event->seq,      event->run_seq,   now,  event->body_hash,
                          fresh.salt,      hashes.run_hash, hashes.leaf_hash, false};
  events_.push_back(std::move(event));
  return receipt;
}

std::vector<AppendRequest> AppendBatch::undo(LogHead& log) {
  for (auto touched = touched_.rbegin(); touched != touched_.rend(); ++touched) touched->run->head = touched->before;
  if (started_) log = before_;
  std::vector<AppendRequest> requests;
  for (Accepted& accepted : requests_) {
    for (std::size_t i = 0; i < accepted.event_of.size(); ++i) {
      if (accepted.event_of[i] == left_out) continue;
      // No other thread has seen the event yet, so its body can be moved back to the request.
      auto& event = const_cast<events::Event&>(*events_[accepted.event_of[i]]);
      accepted.request.events[i].event.body = *std::move(event.body);
    }
    requests.push_back(std::move(accepted.request));
  }
  for (auto& [request, error, place] : refused_) {  // at its original position, to keep the order of each connection
    requests.insert(requests.begin() + static_cast<std::ptrdiff_t>(place), std::move(request));
  }
  *this = AppendBatch();
  return requests;
}

void AppendBatch::committed(Tail& tail) {
  for (const Touched& touched : touched_) {
    touched.run->committed(touched.next_run_seq);
    if (touched.run->head.patched_run_seq < touched.next_run_seq) touched.run->head.working = nullptr;
  }
  for (const auto& [run, index] : changes_) {
    RunView view = run->view();
    apply_to_view(view, *events_[index]);
    if (events_[index]->run_seq == 0) run->begins();
    run->publish(std::move(view));
  }
  for (const Accepted& accepted : requests_) {
    for (const Attachment& row : accepted.request.rows) {
      const auto* artifact = std::get_if<ArtifactRow>(&row.row);
      if (artifact) accepted.request.events[row.event_index].run->stored(artifact->step_id, artifact->hash);
    }
  }
  tail.publish(std::move(events_));
  answer_accepted();
  answer_refused();
}

void AppendBatch::answer_accepted() {
  for (Accepted& accepted : requests_) {
    if (accepted.request.done) accepted.request.done(std::move(accepted.receipts));
    accepted.request.done = nullptr;
  }
}

void AppendBatch::answer_refused() {
  for (auto& [request, error, place] : refused_) {
    if (request.done) request.done(std::move(error));
  }
}

void AppendBatch::refuse(std::vector<AppendRequest> requests, const Error& error) {
  for (AppendRequest& request : requests) {
    Error own = error;
    for (const Addressed& item : request.events) own.event_ids.push_back(item.event.event_id.text());
    if (request.done) request.done(std::move(own));
  }
}

}  // namespace muniment::store
