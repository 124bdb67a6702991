// Resolves pointers for a caller, and applies the stop rule to the outcome.
#include "gateway/read/pointing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/limits.hpp"
#include "evidence/halt_journal.hpp"
#include "gateway/access.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway {

evidence::Sight sight_of(Call& call) {
  evidence::Sight sight;
  sight.corpus = [&call](std::string_view owner) { return call.caller.admin || owner == call.caller.actor; };
  sight.run = [&call](std::string_view run_id) -> Result<bool> {
    if (run_id == log_run_id) return call.caller.admin;
    return sees_run(call, run_id, call.reader->log_no());
  };
  sight.earlier_run = [&call](std::string_view run_id, std::int16_t log_no) -> Result<bool> {
    return sees_run(call, run_id, log_no);
  };
  for (store::Reader* const reader : readers_of_all(call)) {
    if (reader != call.reader) sight.earlier.push_back(reader);
  }
  return sight;
}

evidence::Sight sight_of_every_owner(Call& call) {
  evidence::Sight sight = sight_of(call);
  sight.corpus = [](std::string_view) { return true; };
  sight.run = [](std::string_view) -> Result<bool> { return true; };
  sight.earlier_run = [](std::string_view, std::int16_t) -> Result<bool> { return true; };
  return sight;
}

namespace {

// Returns the run that records the outcome of a pointer, and whether that run may stop for it.
Result<evidence::Wanted> wanted_by(Call& call, const std::string& pointer, const Using& use) {
  evidence::Wanted item{
      .pointer = pointer, .run = use.run, .critical = use.critical, .given = use.given, .depth = use.depth};
  std::string closed_run;
  const auto parsed = evidence::parse_pointer(pointer);
  if (!item.run && parsed && !parsed->run_id.empty() && parsed->run_id != log_run_id) {
    auto own = find_run(call, parsed->run_id);
    // A run in a closed log can be read but cannot stop.
    if (!own && own.error().code != Errc::not_found && own.error().code != Errc::conflict)
      return std::move(own).error();
    if (own) item.run = std::move(*own);
    if (!own && own.error().code == Errc::conflict) closed_run = parsed->run_id;
  }
  if (item.run && item.run->closed_log != 0) {
    closed_run = item.run->run_id;
    item.run = nullptr;
  }
  if (item.run && item.run->run_id != log_run_id && item.run->view().owner == call.caller.actor) return item;
  if (!item.run && use.run_needed && closed_run.empty()) return item;
  item.may_halt = false;
  item.whose = closed_run;
  if (item.run && item.run->run_id != log_run_id) item.whose = item.run->run_id;
  item.run = call.services.runs.find(log_run_id);
  return item;
}

evidence::Resolver resolver_for(Call& call, const Using& use, store::ChunkRows* known = nullptr) {
  evidence::Sight sight = use.every_owner ? sight_of_every_owner(call) : sight_of(call);
  sight.known = known;
  sight.as_of = use.as_of;
  if (use.as_of) sight.as_of_time = parse_time(call.params["asof"].string_or(""));
  return {*call.reader, call.services.files, std::move(sight)};
}

}  // namespace

Result<evidence::Outcome> resolve_pointers(Call& call, const std::vector<std::string>& pointers, const Using& use) {
  std::vector<evidence::Wanted> wanted;
  for (const std::string& pointer : pointers) {
    ASSIGN_OR_RETURN(evidence::Wanted item, wanted_by(call, pointer, use));
    wanted.push_back(std::move(item));
  }
  evidence::Resolver resolver = resolver_for(call, use);
  return evidence::StopRule(resolver, *call.reader, call.services.tail, call.services.runs, call.services.clock)
      .resolve(wanted, use.with_text);
}

Result<evidence::Outcome> look_at_pointers(Call& call, const std::vector<std::string>& pointers, const Using& use) {
  evidence::Outcome outcome;
  evidence::Resolver resolver = resolver_for(call, use, &call.services.retrieval.documents().chunk_rows());
  RETURN_IF_ERROR(resolver.read_ahead(pointers));
  std::vector<std::string> damaged;
  std::vector<std::size_t> places;
  for (const std::string& pointer : pointers) {
    ASSIGN_OR_RETURN(evidence::Resolution found, resolver.resolve(pointer, use.depth, use.with_text));
    if (found.damaged() && found.parsed) {
      damaged.push_back(pointer);
      places.push_back(outcome.items.size());
    }
    outcome.items.push_back({std::move(found), use.critical});
  }
  if (damaged.empty()) return outcome;
  ASSIGN_OR_RETURN(evidence::Outcome again, resolve_pointers(call, damaged, use));
  for (std::size_t i = 0; i < places.size(); ++i) outcome.items[places[i]] = std::move(again.items[i]);
  outcome.events = std::move(again.events);
  outcome.halts = std::move(again.halts);
  return outcome;
}

namespace {

// Refuses a pointer that is intact but unusable as a dependency. In that case no run stops for the other pointers of
// the request.
Status check_usable(const evidence::Resolution& found) {
  if (!found.parsed) return Error(Errc::invalid_argument, "PARSE_ERROR: " + found.detail);
  const std::string words = found.pointer + ": " + std::string(name_of(found.reason)) + ", " + found.detail;
  const bool unversioned = found.reason == evidence::Reason::missing_version;
  if (!unversioned && !found.withdrawn()) return success();
  Error error = unversioned ? Error(Errc::invalid_argument, words + ", of what was read")
                            : Error(Errc::not_found, words + ". Leave it out.");
  error.pointer = found.pointer;
  return error;
}

Error mistaken(const evidence::Resolution& found) {
  Error error(Errc::not_found, fmt::format("{}: {}, {}. The log never had it: copy the pointer from a reply or a card.",
                                           found.pointer, name_of(found.reason), found.detail));
  error.pointer = found.pointer;
  return error;
}

}  // namespace

Status begin_referring(Call& call) {
  ASSIGN_OR_RETURN(call.erasures_seen, call.services.appender.erasure_gate().pass(call.deadline));
  return success();
}

Result<evidence::Outcome> resolve_needed(Call& call, const std::vector<std::string>& pointers,
                                         const std::shared_ptr<store::Run>& run, bool with_text) {
  if (pointers.size() > limits::pointers_per_request_max) {
    Error error(Errc::too_large, fmt::format("{} pointers, limit {}. Record them in parts.", pointers.size(),
                                             limits::pointers_per_request_max));
    error.limit = static_cast<std::int64_t>(limits::pointers_per_request_max);
    return error;
  }
  ASSIGN_OR_RETURN(
      evidence::Outcome outcome,
      resolve_pointers(call, pointers, {.run = run, .critical = true, .given = true, .with_text = with_text}));
  for (const auto& item : outcome.items) {
    RETURN_IF_ERROR(check_usable(item.resolution));
    if (!item.critical && item.resolution.damaged()) return mistaken(item.resolution);
  }
  return outcome;
}

Status check_usable(Call& call, const std::vector<std::string>& pointers) {
  evidence::Resolver resolver = resolver_for(call, {});
  for (const std::string& pointer : std::set(pointers.begin(), pointers.end())) {
    ASSIGN_OR_RETURN(const evidence::Resolution found, resolver.resolve(pointer, evidence::Depth::span));
    RETURN_IF_ERROR(check_usable(found));
  }
  return success();
}

void log_outcome(const evidence::Outcome& outcome, store::AppendRequest& request) {
  request.events.insert(request.events.begin(), outcome.events.begin(), outcome.events.end());
  for (store::Attachment& row : request.rows) row.event_index += outcome.events.size();
}

PendingAppend append_outcome(const evidence::Outcome& outcome, std::function<Result<Reply>()> reply) {
  PendingAppend append;
  append.request.actor = events::daemon_actor;
  append.request.events = outcome.events;
  append.finish = [reply](Services&, const std::vector<events::Receipt>&) { return reply(); };
  append.refused = [reply, halts = outcome.halts](Services& services, Error error) -> Result<Reply> {
    // A concurrent request halted the run; the answer is the same.
    if (error.code == Errc::run_halted) return reply();
    if (error.code != Errc::unavailable || halts.empty()) return error;
    for (const evidence::PendingHalt& halt : halts) RETURN_IF_ERROR(services.halts.record(halt));
    return reply();
  };
  append.finish_on_worker = !outcome.halts.empty();  // the journal calls fsync
  return append;
}

void log_unwaited(Services& services, const evidence::Outcome& outcome) {
  if (outcome.events.empty()) return;
  store::AppendRequest request;
  request.actor = events::daemon_actor;
  request.events = outcome.events;
  services.appender.submit(std::move(request)).ok();
}

namespace {

// Returns that of several damaged pointers which stops a run.
const evidence::Resolution& stopped_for(const evidence::Outcome& outcome, const evidence::Outcome::Item& damage) {
  if (outcome.halts.empty()) return damage.resolution;
  const auto item = std::ranges::find(outcome.items, outcome.halts.front().halt.pointer,
                                      [](const auto& one) { return one.resolution.pointer; });
  return item == outcome.items.end() ? damage.resolution : item->resolution;
}

}  // namespace

Error damage_error(const evidence::Outcome& outcome, const evidence::Outcome::Item& damage,
                   const std::shared_ptr<store::Run>& run) {
  const evidence::Resolution& found = stopped_for(outcome, damage);
  const std::string words = found.pointer + ": " + std::string(name_of(found.reason)) + ", " + found.detail;
  const bool stopped = !outcome.halts.empty() || (run && run->view().status == store::RunStatus::halted);
  const std::string run_id = !outcome.halts.empty() ? outcome.halts.front().run_id
                             : run                  ? run->run_id
                             : found.parsed         ? found.parsed->run_id
                                                    : "";
  Error error = stopped ? Error(Errc::run_halted, "SYSTEM_ERROR: " + words + ". See: muniment recover " + run_id)
                        : Error(Errc::corrupt, words);
  if (run_id != log_run_id) error.run_id = run_id;
  error.pointer = found.pointer;
  return error;
}

Result<Answer> stop(const evidence::Outcome& outcome, const std::shared_ptr<store::Run>& run) {
  const Error error = damage_error(outcome, *outcome.damage(), run);
  if (outcome.events.empty()) return error;  // the run is halted already
  return Answer(append_outcome(outcome, [error]() -> Result<Reply> { return error; }));
}

Result<std::optional<Answer>> answer_damage(Call& call, const std::string& pointer, Using use, const Error& error) {
  use.depth = evidence::Depth::whole;
  ASSIGN_OR_RETURN(const evidence::Outcome outcome, resolve_pointers(call, {pointer}, use));
  const evidence::Outcome::Item& item = outcome.items.front();
  if (!item.resolution.damaged()) {
    log_unwaited(call.services, outcome);
    return std::optional<Answer>();
  }
  const Error told = outcome.halts.empty() ? error : damage_error(outcome, item, use.run);
  if (outcome.events.empty()) return told;
  return std::optional<Answer>(append_outcome(outcome, [told]() -> Result<Reply> { return told; }));
}

void write_halted(json::Writer& out, const evidence::Outcome& outcome) {
  out.key("halted").begin_array();
  for (const evidence::PendingHalt& halt : outcome.halts) {
    out.begin_object()
        .member("run_id", halt.run_id)
        .member("code", halt.halt.code)
        .member("pointer", halt.halt.pointer)
        .member("reason", halt.halt.reason)
        .end_object();
  }
  out.end_array();
}

void write_resolution(json::Writer& out, const evidence::Resolution& found, bool critical, std::string_view cursor) {
  out.begin_object().member("pointer", found.pointer).member("ok", found.ok());
  if (!found.ok()) out.member("reason", name_of(found.reason)).member("detail", found.detail);
  if (found.parsed) out.member("type", found.type()).member("id", found.parsed->name());
  if (!found.path.empty()) out.member("path", found.path);
  if (found.expected) out.member("expected_hash", *found.expected);
  if (found.actual) out.member("actual_hash", *found.actual);
  if (found.size_bytes) out.member("size_bytes", *found.size_bytes);
  if (found.text) out.member("text", *found.text);
  if (!cursor.empty()) out.member("cursor", cursor);
  if (found.current) out.member("current", *found.current);
  if (found.log_no != 0) out.member("log_no", int{found.log_no});
  out.member("critical", critical).end_object();
}

}  // namespace muniment::gateway
