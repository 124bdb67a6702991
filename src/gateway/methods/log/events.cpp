// event.append: the hot path. On the loop thread it uses memory alone; a request that needs a file or Postgres (a run
// that is not loaded, ids that may be known) moves to a worker.
#include <algorithm>
#include <optional>
#include <span>

#include "base/process/failpoint.hpp"
#include "events/catalogue.hpp"
#include "gateway/access.hpp"
#include "gateway/append/append_admission.hpp"
#include "gateway/append/event_json.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/append/spill.hpp"
#include "gateway/methods/knowledge/artifact_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/methods/tasks/plan_guard.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"
#include "snapshot/snapshotter.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::string_view patched_type = "state.patched";

Reply append_reply(bool several, std::span<const events::Receipt> receipts, const Spilled& spilled) {
  Reply reply;
  if (!several) {
    append_receipt_json(reply.result, receipts.front(), spilled_json(spilled, 0));
    return reply;
  }
  reply.result.reserve(16 + receipts.size() * 480);
  reply.result = "{\"receipts\":[";
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (i > 0) reply.result.push_back(',');
    append_receipt_json(reply.result, receipts[i], spilled_json(spilled, i));
  }
  reply.result += "]}";
  return reply;
}

bool wants_spill(Call& call, const AdmittedAppend& admitted) {
  if (!call.params["spill"].as_bool().value_or(false)) return false;
  return std::ranges::any_of(admitted.events, [](const AdmittedEvent& item) { return may_spill(item.body); });
}

// Checks that the patches among the events apply to the run's current working state. Uses the bodies as received,
// before spilling.
Result<store::CheckedPatches> check_patches(Call& call, const store::Run& run, const AdmittedAppend& admitted) {
  std::vector<std::string_view> patches;
  for (const AdmittedEvent& item : admitted.events) {
    if (item.event.type == patched_type) patches.push_back(item.body.source());
  }
  return call.services.snapshots.check_patches(*call.reader, run, patches);
}

bool sends_patches(const json::Value& params) {
  if (params["type"].as_plain_string() == patched_type) return true;
  const json::Value several = params["events"];
  if (!several) return false;
  for (const json::Value item : several) {
    if (item["type"].as_plain_string() == patched_type) return true;
  }
  return false;
}

bool has_patches(const AdmittedAppend& admitted) {
  return std::ranges::any_of(admitted.events,
                             [](const AdmittedEvent& item) { return item.event.type == patched_type; });
}

// Spills long parts of the bodies.
Result<Spilled> spill_bodies(Call& call, const store::Run& run, AdmittedAppend& admitted) {
  Spilled spilled;
  for (std::size_t i = 0; i < admitted.events.size(); ++i) {
    events::NewEvent& event = admitted.events[i].event;
    if (!may_spill(admitted.events[i].body)) continue;
    ASSIGN_OR_RETURN(event.body, spill_body(run, event.step_id.value_or(""), event.type, admitted.events[i].body, i,
                                            call.services.clock.now(), spilled));
  }
  return spilled;
}

// A long run that was loaded again has only a part of its ids in memory, so ids that a client chose have to be looked
// up.
bool has_unknown_ids(const store::Run& run, const AdmittedAppend& admitted) {
  return run.ids_complete_from > 0 &&
         std::ranges::any_of(admitted.events, [](const AdmittedEvent& item) { return !item.event.event_id_is_ours; });
}

// The artifacts precede the events that refer to them, in the same commit.
void add_artifacts(Call& call, const std::shared_ptr<store::Run>& run, const Spilled& spilled,
                   const std::vector<events::NewEvent>& events, store::AppendRequest& request) {
  for (const Spilled::Artifact& artifact : spilled.artifacts) {
    request.rows.push_back({request.events.size(), artifact.row});
    const std::string step = events[artifact.event].step_id.value_or("");
    request.events.push_back(
        {run, make_event(call, *run, "artifact.stored", store::artifact_stored_body(artifact.row), step), false});
  }
}

// Returns the manifests that events name. Imported events may name manifests that were not imported.
std::vector<std::string> manifests_of(const store::Run& run, const AdmittedAppend& admitted) {
  std::vector<std::string> pointers;
  if (run.view().origin == events::Origin::imported) return pointers;
  for (const AdmittedEvent& item : admitted.events) {
    if (events::is_foreign(item.event.type)) continue;
    if (const auto id = item.body["manifest_id"].as_string()) pointers.push_back("manifest://" + *id);
  }
  return pointers;
}

// Skips a run that is not open: the appender returns the reason.
Result<evidence::Outcome> resolve_manifests(Call& call, const std::shared_ptr<store::Run>& run,
                                            const std::vector<std::string>& manifests) {
  if (manifests.empty() || run->view().status != store::RunStatus::open) return evidence::Outcome{};
  return resolve_needed(call, manifests, run);
}

// A state's hash includes the run's position. A patch that was admitted against a hash may be numbered only there; any
// append in between refuses it.
bool names_its_state(const AdmittedAppend& admitted) {
  const AdmittedEvent& first = admitted.events.front();
  return first.event.type == patched_type && first.body["expected_state_hash"].present();
}

// Answers if the log has all of the events. If the first request with their key had more events, it was a different
// request. Errors: conflict.
Result<Answer> answer_again(Call& call, const store::Run& run, bool several,
                            const std::vector<events::Receipt>& receipts, const Spilled& spilled) {
  if (!call.idempotency_key.empty()) {
    ASSIGN_OR_RETURN(
        const auto next,
        call.reader->event_by_id(run.view().run_no, appended_id(call.caller, call.idempotency_key, receipts.size())));
    if (next) return used_key(*next);
  }
  return Answer(append_reply(several, receipts, spilled));
}

Error state_moved_on(const store::Run& run) {
  Error error(Errc::conflict, "the state of " + run.run_id +
                                  " changed while the patch was admitted. "
                                  "Read it again, or drop expected_state_hash.");
  error.run_id = run.run_id;
  return error;
}

// Sets the reply of a committed append, and the clean-up of a refused one.
void answer_append(PendingAppend& append, const std::shared_ptr<store::Run>& run, const Spilled& spilled, bool several,
                   std::size_t count, bool by_state) {
  append.finish = [several, spilled, count](Services& services,
                                            const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    for (const Spilled::Artifact& artifact : spilled.artifacts) services.files.committed(artifact.row.artifact_id);
    return append_reply(several, std::span(receipts).subspan(spilled.artifacts.size(), count), spilled);
  };
  if (!spilled.artifacts.empty() || by_state) {
    append.refused = [run, spilled, by_state](Services& services, Error error) -> Result<Reply> {
      abandon(spilled, services.files);
      if (by_state && error.conflict == AppendConflict::other_run_seq) return state_moved_on(*run);
      return error;
    };
  }
}

// Errors: those of admit_append. An attempt to append an event of the gate is recorded as a violation.
Result<AdmittedAppend> admit(Call& call, const std::shared_ptr<store::Run>& run) {
  events::Origin origin = run->view().origin;
  if (call.caller.observed && origin == events::Origin::reported) origin = events::Origin::observed;
  Result<AdmittedAppend> admitted =
      admit_append(call.params, call.caller, call.idempotency_key, origin, call.services.clock.now());
  if (!admitted && admitted.error().code == Errc::denied) note_direct_change(call, run);
  return admitted;
}

}  // namespace

Result<Answer> event_append(Call& call) {
  std::string run_id = call.params["run_id"].string_or("");
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, find_run(call, run_id));
  // A patch applies to the state that its sender knows, so the connection's earlier events have to be appended first.
  if (!call.reader && sends_patches(call.params)) return NeedsWorker{.after_earlier = true};
  if (!run) return NeedsWorker{};
  if (run_id == log_run_id) RETURN_IF_ERROR(check_open(*run));

  ASSIGN_OR_RETURN(AdmittedAppend admitted, admit(call, run));
  const bool several = admitted.several;
  std::optional<std::int64_t> expected_run_seq = call.params["expected_run_seq"].as_int();
  std::optional<Error> refused_patch;
  std::optional<store::CheckedPatches> patches;
  bool by_state = false;
  if (has_patches(admitted)) {
    by_state = !expected_run_seq && names_its_state(admitted);
    if (by_state) expected_run_seq = run->next_run_seq();
    RETURN_IF_ERROR(begin_referring(call));
    Result<store::CheckedPatches> checked = check_patches(call, *run, admitted);
    if (checked)
      patches = *std::move(checked);
    else
      refused_patch = std::move(checked).error();
  }
  const std::vector<std::string> manifests = manifests_of(*run, admitted);
  Spilled spilled;
  const bool spills = wants_spill(call, admitted);
  // A repetition is detected before files are written, and for a patch that does not apply, because it may have been
  // applied already.
  const bool check_ids = call.check_ids || spills || refused_patch || !manifests.empty() ||
                         finishes_plan_items(admitted) || has_unknown_ids(*run, admitted);
  if (check_ids && !call.reader) return NeedsWorker{};
  if ((spills || !manifests.empty()) && !call.erasures_seen) RETURN_IF_ERROR(begin_referring(call));
  if (spills) {
    ASSIGN_OR_RETURN(spilled, spill_bodies(call, *run, admitted));
  }
  ASSIGN_OR_RETURN(std::vector<events::NewEvent> violations, plan_violations(call, *run, admitted));
  ASSIGN_OR_RETURN(std::vector<events::NewEvent> events, seal_bodies(std::move(admitted)));
  if (check_ids) {
    ASSIGN_OR_RETURN(KnownEvents known, known_events(call, *run, events));
    RETURN_IF_ERROR(refer_as_recorded(call, *run, events, known, spilled));
    ASSIGN_OR_RETURN(const auto first, first_receipts(call, *run, events, known));
    if (first) return answer_again(call, *run, several, *first, spilled);
    if (refused_patch) return *std::move(refused_patch);
  }
  ASSIGN_OR_RETURN(const evidence::Outcome outcome, resolve_manifests(call, run, manifests));
  if (outcome.damage() != nullptr) return stop(outcome, run);
  const std::int64_t contents_asked_at = run->next_run_seq();
  if (spills) {
    RETURN_IF_ERROR(store_contents(call, *run, events, spilled));
    FAILPOINT("append.spilled");
  }
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.ids_checked = check_ids;
  append.request.expected_run_seq = expected_run_seq;
  append.request.patches = std::move(patches);
  if (spills) append.request.contents_asked_at = contents_asked_at;
  append.leading_events = spilled.artifacts.size();
  append.request.events.reserve(spilled.artifacts.size() + events.size());
  add_artifacts(call, run, spilled, events, append.request);
  for (events::NewEvent& event : events) {
    append.request.events.push_back({run, std::move(event), false});
  }
  for (events::NewEvent& event : violations) append.request.events.push_back({run, std::move(event), false});
  // The failures follow the request's events, whose first one may have been promised a position.
  append.request.events.insert(append.request.events.end(), outcome.events.begin(), outcome.events.end());
  answer_append(append, run, spilled, several, events.size(), by_state);
  return append;
}

}  // namespace muniment::gateway::methods
