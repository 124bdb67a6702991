#include "gateway/access.hpp"

#include <algorithm>
#include <array>

#include "events/catalogue.hpp"
#include "gateway/event_json.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway {
namespace {

Error no_run(std::string_view run_id) {
  Error error(Errc::not_found, "no run " + std::string(run_id) + ". Start it: run.start");
  error.run_id = run_id;
  return error;
}

}  // namespace

Status check_admin(const Call& call, std::string_view what) {
  if (call.caller.admin) return success();
  return Error(Errc::denied, call.caller.actor + " may not " + std::string(what) + ": only root and the daemon's own user may.");
}

bool may_see(const Caller& caller, const store::RunView& run) {
  return caller.admin || run.owner == caller.actor;
}

Result<std::shared_ptr<store::Run>> load_run(Call& call, std::string_view run_id) {
  if (auto run = call.services.runs.find(run_id)) return run;
  if (!call.reader) return std::shared_ptr<store::Run>();
  return call.services.runs.find_or_load(run_id, [&] { return call.reader->load_run(run_id); });
}

Result<std::shared_ptr<store::Run>> find_run(Call& call, std::string_view run_id) {
  if (run_id != log_run_id) RETURN_IF_ERROR(check_run_id(run_id));
  ASSIGN_OR_RETURN(std::shared_ptr<store::Run> run, load_run(call, run_id));
  if (!run) {
    if (!call.reader) return run;  // it may be in the log all the same
    return no_run(run_id);
  }
  const store::RunView view = run->view();
  if (view.status == store::RunStatus::absent) return no_run(run_id);
  if (may_see(call.caller, view)) return run;
  Error error = no_run(run_id);
  error.hidden = true;
  return error;
}

Status check_open(const store::Run& run) {
  if (run.run_id == log_run_id) {
    return Error(Errc::denied, "the run _log is the daemon's own. Append to a run of yours.");
  }
  switch (run.view().status) {
    case store::RunStatus::open: return success();
    case store::RunStatus::ended: return ended_error(run);
    case store::RunStatus::halted: return halted_error(run);
    case store::RunStatus::absent: break;
  }
  return no_run(run.run_id);
}

events::Origin origin_of_daemon_event(std::string_view type) {
  constexpr std::array<std::string_view, 14> passed_on = {
      "run.started",  "run.ended",       "run.resumed",     "run.annotated", "child.started",
      "child.ended",  "claim.recorded",  "claim.decided",   "task.opened",   "evidence.recorded",
      "evidence.linked", "feedback.recorded", "manifest.recorded", "artifact.redacted"};
  const bool reported = std::find(passed_on.begin(), passed_on.end(), type) != passed_on.end();
  return reported ? events::Origin::reported : events::Origin::observed;
}

events::NewEvent make_event(Call& call, const store::Run& run, std::string_view type,
                            std::string body, std::string_view step_id) {
  events::NewEvent event;
  event.type = type;
  if (const events::TypeInfo* info = events::find_type(type)) {
    event.schema_version = info->schema_version;
  }
  event.body = std::move(body);
  if (!step_id.empty()) event.step_id = step_id;
  event.event_id = make_uuid_v7(call.services.clock.now());
  event.event_id_is_ours = true;
  const bool imported = run.view().origin == events::Origin::imported;
  event.origin = imported ? events::Origin::imported : origin_of_daemon_event(type);
  events::seal(event);
  return event;
}

Uuid idempotent_id(const Caller& caller, std::string_view method, std::string_view idempotency_key,
                   std::size_t index) {
  // Lengths in front: no two of these names can read the same.
  std::string name;
  for (std::string_view part : {std::string_view(caller.actor), method, idempotency_key}) {
    name.append(std::to_string(part.size())).append(":").append(part);
  }
  return make_uuid_v8(name.append(std::to_string(index)));
}

std::string receipt_json(const events::Receipt& receipt) {
  std::string text;
  append_receipt_json(text, receipt);
  return text;
}

Result<std::optional<std::int64_t>> asof_seq(Call& call) {
  const json::Value asof = call.params["asof"];
  if (!asof) return std::optional<std::int64_t>();
  if (const auto seq = asof.as_int()) return std::optional(*seq);
  const auto time = parse_time(asof.string_or(""));
  if (!time) return Error(Errc::invalid_argument, "asof: expected a seq or an RFC 3339 time such as \"2026-11-21T14:02:11Z\"");
  ASSIGN_OR_RETURN(const std::int64_t seq, call.reader->seq_as_of(*time));
  return std::optional(seq);
}

}  // namespace muniment::gateway
