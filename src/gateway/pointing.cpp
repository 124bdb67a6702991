#include "gateway/pointing.hpp"

#include "evidence/halt_journal.hpp"
#include "gateway/access.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway {

evidence::Sight sight_of(Call& call) {
  evidence::Sight sight;
  sight.corpus = [&call](std::string_view owner) { return call.caller.admin || owner == call.caller.actor; };
  sight.run = [&call](std::string_view run_id) -> Result<bool> {
    if (run_id == log_run_id) return call.caller.admin;
    const auto run = find_run(call, run_id);
    if (run) return true;
    if (run.error().code == Errc::not_found) return false;
    return run.error();
  };
  return sight;
}

Result<evidence::Outcome> resolve_pointers(Call& call, const std::vector<std::string>& pointers,
                                           const std::shared_ptr<store::Run>& run, bool critical, bool with_text,
                                           std::optional<std::int64_t> as_of) {
  std::vector<evidence::Wanted> wanted;
  for (const std::string& pointer : pointers) {
    evidence::Wanted item{pointer, run, critical};
    const auto parsed = evidence::parse_pointer(pointer);
    if (!item.run && parsed && !parsed->run_id.empty() && parsed->run_id != log_run_id) {
      auto own = find_run(call, parsed->run_id);
      if (!own && own.error().code != Errc::not_found) return std::move(own).error();
      if (own) item.run = std::move(*own);
    }
    wanted.push_back(std::move(item));
  }
  evidence::Sight sight = sight_of(call);
  sight.as_of = as_of;
  evidence::Resolver resolver(*call.reader, call.services.files, std::move(sight));
  return evidence::StopRule(resolver, *call.reader, call.services.tail, call.services.runs, call.services.clock).resolve(wanted, with_text);
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
    // Halted meanwhile by somebody else: the answer is the same.
    if (error.code == Errc::run_halted) return reply();
    if (error.code != Errc::unavailable || halts.empty()) return error;
    for (const evidence::PendingHalt& halt : halts) RETURN_IF_ERROR(services.halts.record(halt));
    return reply();
  };
  append.finish_on_worker = !outcome.halts.empty();  // the journal's fsync
  return append;
}

Error damage_error(const evidence::Outcome::Item& damage, std::string_view run_id) {
  const evidence::Resolution& found = damage.resolution;
  Error error(Errc::run_halted, "SYSTEM_ERROR: " + found.pointer + ": " + std::string(name_of(found.reason)) + ", " + found.detail +
                                    ". See: muniment recover " + std::string(run_id));
  error.run_id = run_id;
  error.pointer = found.pointer;
  return error;
}

void write_resolution(json::Writer& out, const evidence::Resolution& found, bool critical) {
  out.begin_object().member("pointer", found.pointer).member("ok", found.ok());
  if (!found.ok()) out.member("reason", name_of(found.reason)).member("detail", found.detail);
  if (found.parsed) out.member("type", found.type()).member("id", found.parsed->name());
  if (!found.path.empty()) out.member("path", found.path);
  if (found.expected) out.member("expected_hash", *found.expected);
  if (found.actual) out.member("actual_hash", *found.actual);
  if (found.size_bytes) out.member("size_bytes", *found.size_bytes);
  if (found.text) out.member("text", *found.text);
  if (found.current) out.member("current", *found.current);
  out.member("critical", critical).end_object();
}

}  // namespace muniment::gateway
