// Finds the run, the log and the reader that a request names, and checks that the caller may use them.
#include "gateway/access.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "events/catalogue.hpp"
#include "gateway/append/event_json.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway {
namespace {

Error no_run(std::string_view run_id) {
  Error error(Errc::not_found, "no run " + std::string(run_id) + ". Start it: run.start");
  error.run_id = run_id;
  return error;
}

// A run of another user gets the same error, so that its existence stays hidden.
Error hidden_run(std::string_view run_id) {
  Error error = no_run(run_id);
  error.hidden = true;
  return error;
}

}  // namespace

Status check_admin(const Call& call, std::string_view what) {
  if (call.caller.admin) return success();
  return Error(Errc::denied,
               call.caller.actor + " may not " + std::string(what) + ": only root and the daemon's own user may.");
}

bool may_see(const Caller& caller, const store::RunView& run) { return caller.admin || run.owner == caller.actor; }

Result<std::shared_ptr<store::Run>> load_run(Call& call, std::string_view run_id) {
  if (auto run = call.services.runs.find(run_id)) return run;
  if (!call.reader) return std::shared_ptr<store::Run>();
  return call.services.runs.find_or_load(run_id, [&] { return call.reader->load_run(run_id); });
}

Result<std::shared_ptr<store::Run>> find_run(Call& call, std::string_view run_id) {
  if (run_id != log_run_id) RETURN_IF_ERROR(check_run_id(run_id));
  ASSIGN_OR_RETURN(std::shared_ptr<store::Run> run, load_run(call, run_id));
  if (!run && !call.reader) return run;  // a commit of unknown outcome may have written the run
  const bool there = run && run->view().status != store::RunStatus::absent;
  if (there) return may_see(call.caller, run->view()) ? Result<std::shared_ptr<store::Run>>(run) : hidden_run(run_id);
  if (!call.reader || run_id == log_run_id) return no_run(run_id);
  ASSIGN_OR_RETURN(run, find_earlier_run(call, run_id));
  if (!run) return no_run(run_id);
  return may_see(call.caller, run->view()) ? store::closed_error(*run) : hidden_run(run_id);
}

Result<std::shared_ptr<store::Run>> find_earlier_run(Call& call, std::string_view run_id) {
  for (const auto& log : call.services.earlier) {
    ASSIGN_OR_RETURN(std::shared_ptr<store::Run> run, store::find_run(*log, *call.reader, run_id));
    if (run) return run;
  }
  return std::shared_ptr<store::Run>();
}

namespace {

// Returns the run of that name in the current log, or else in the newest log that has it. `log_no` restricts the search
// to one log.
Result<ReadRun> look_for_run(Call& call, std::string_view run_id, std::optional<std::int64_t> log_no) {
  if (run_id != log_run_id) RETURN_IF_ERROR(check_run_id(run_id));
  std::shared_ptr<store::Run> run;
  store::Reader* reader = call.reader;
  if (!log_no || *log_no == call.reader->log_no()) {
    ASSIGN_OR_RETURN(run, load_run(call, run_id));
    if (run && run->view().status == store::RunStatus::absent) run = nullptr;
  }
  for (const auto& log : call.services.earlier) {
    if (run || (log_no ? *log_no != log->place.log_no : run_id == log_run_id)) continue;
    reader = &call.reader->of(log->place);
    ASSIGN_OR_RETURN(run, store::find_run(*log, *call.reader, run_id));
  }
  if (!run) return no_run(run_id);
  return may_see(call.caller, run->view()) ? Result<ReadRun>(ReadRun{std::move(run), reader}) : hidden_run(run_id);
}

}  // namespace

Result<ReadRun> find_run_to_read(Call& call, std::string_view run_id) {
  ASSIGN_OR_RETURN(ReadRun found, look_for_run(call, run_id, call.params["log_no"].as_int()));
  if (found.run->closed_log != 0) call.read_log = found.run->closed_log;
  return found;
}

void note_log(Call& call, const store::Reader& reader) {
  if (reader.log_no() != call.reader->log_no()) call.read_log = reader.log_no();
}

Result<bool> sees_run(Call& call, std::string_view run_id, std::int16_t log_no) {
  const auto found = look_for_run(call, run_id, log_no);
  if (found) return true;
  if (found.error().code == Errc::not_found) return false;
  return found.error();
}

store::EarlierLog* earlier_log(Services& services, std::int16_t log_no) {
  const auto found = std::ranges::find(services.earlier, log_no, [](const auto& log) { return log->place.log_no; });
  return found == services.earlier.end() ? nullptr : found->get();
}

Result<const audit::ClosedTree::Proven*> closed_tree(Call& call, std::int16_t log_no) {
  const auto tree = call.services.closed_trees.find(log_no);
  if (tree == call.services.closed_trees.end())
    return Error(Errc::not_found, fmt::format("log_no: this log does not continue a log {}.", log_no));
  return tree->second->proven(call.deadline);
}

Result<store::Reader*> reader_named(Call& call) {
  const auto log_no = call.params["log_no"].as_int();
  if (!log_no || *log_no == call.reader->log_no()) return call.reader;
  for (const auto& log : call.services.earlier) {
    if (log->place.log_no != *log_no) continue;
    call.read_log = log->place.log_no;
    return &call.reader->of(log->place);
  }
  return Error(
      Errc::not_found,
      fmt::format("log_no: this log does not continue a log {}. server.status lists the logs that it continues.",
                  *log_no));
}

std::vector<store::Reader*> readers_of_all(Call& call) {
  std::vector<store::Reader*> readers{call.reader};
  for (const auto& log : call.services.earlier) readers.push_back(&call.reader->of(log->place));
  return readers;
}

Result<std::optional<events::Event>> find_event(Call& call, std::int64_t seq) {
  ASSIGN_OR_RETURN(store::Reader* const reader, reader_named(call));
  ASSIGN_OR_RETURN(auto event, reader->event_at(seq));
  if (!event) return event;
  const auto run = look_for_run(call, event->run_id, reader->log_no());
  if (run) return event;
  if (run.error().code == Errc::not_found) return std::optional<events::Event>();
  return run.error();
}

Error taken(std::string_view what, std::string_view name) {
  Error error(Errc::conflict, fmt::format("{} {} is taken. Choose another name.", what, name));
  error.hidden = true;
  return error;
}

Status check_open(const store::Run& run) {
  if (run.closed_log != 0) return store::closed_error(run);
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

events::Origin origin_of_daemon_event(std::string_view type, const Caller& caller) {
  if (type.starts_with("command.") && !caller.observed) return events::Origin::reported;
  constexpr std::array<std::string_view, 16> passed_on = {
      "run.started",       "run.ended",         "run.resumed",     "run.annotated",
      "child.started",     "child.ended",       "claim.recorded",  "claim.decided",
      "task.opened",       "evidence.recorded", "evidence.linked", "feedback.recorded",
      "manifest.recorded", "artifact.redacted", "log.verified",    "log.exported"};
  const bool reported = std::find(passed_on.begin(), passed_on.end(), type) != passed_on.end();
  return reported ? events::Origin::reported : events::Origin::observed;
}

events::NewEvent make_event(Call& call, const store::Run& run, std::string_view type, std::string body,
                            std::string_view step_id) {
  events::NewEvent event;
  event.type = type;
  if (const events::TypeInfo* info = events::find_type(type)) {
    event.schema_version = info->schema_version;
  }
  event.body = std::move(body);
  if (!step_id.empty()) event.step_id = step_id;
  event.event_id = make_uuid_v7(call.services.clock.now());
  event.event_id_is_ours = true;
  const bool imported =
      run.view().origin == events::Origin::imported || (type == "run.started" && call.params["import"]);
  if (imported) event.occurred_at = parse_time(call.params["_meta"]["occurred_at"].string_or(""));
  event.origin = imported ? events::Origin::imported : origin_of_daemon_event(type, call.caller);
  events::seal_own(event);
  return event;
}

namespace {

// Each length precedes its part, so that two different names cannot encode to the same bytes.
Uuid named_by(std::initializer_list<std::string_view> parts, std::size_t index) {
  std::string name;
  for (std::string_view part : parts) name.append(std::to_string(part.size())).append(":").append(part);
  return make_uuid_v8(name.append(std::to_string(index)));
}

}  // namespace

Uuid idempotent_id(const Caller& caller, std::string_view method, std::string_view idempotency_key, std::size_t index) {
  return named_by({caller.actor, method, idempotency_key}, index);
}

Uuid idempotent_id_in(const store::Run& run, const Caller& caller, std::string_view method,
                      std::string_view idempotency_key, std::size_t index) {
  return named_by({caller.actor, method, run.run_id, idempotency_key}, index);
}

std::string receipt_json(const events::Receipt& receipt) {
  std::string text;
  append_receipt_json(text, receipt);
  return text;
}

Result<std::optional<std::int64_t>> asof_seq(const Call& call, store::Reader& reader) {
  const json::Value asof = call.params["asof"];
  if (!asof) return std::optional<std::int64_t>();
  if (const auto seq = asof.as_int()) {
    if (*seq < call.services.tail.next_seq()) return std::optional(*seq);
    ASSIGN_OR_RETURN(const std::int64_t present, call.reader->log_size());
    ASSIGN_OR_RETURN(const std::int64_t own, reader.log_size());
    const std::int64_t size = std::max(present, own);
    if (*seq < size) return std::optional(*seq);
    return Error(Errc::invalid_argument,
                 fmt::format("asof: {} is in the future; the newest event is {}. Omit asof to read the current state.",
                             *seq, size - 1));
  }
  const auto time = parse_time(asof.string_or(""));
  if (!time)
    return Error(Errc::invalid_argument, "asof: expected a seq or an RFC 3339 time such as \"2026-11-21T14:02:11Z\"");
  ASSIGN_OR_RETURN(const bool passed, reader.has_passed(*time, call.services.clock, call.services.tail, call.deadline));
  if (!passed)
    return Error(Errc::invalid_argument,
                 fmt::format("asof: {} is in the future. Omit asof to read the current state.", asof.string_or("")));
  ASSIGN_OR_RETURN(const std::int64_t seq, reader.seq_as_of(*time));
  return std::optional(seq);
}

}  // namespace muniment::gateway
