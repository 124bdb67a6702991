// run.start: starts a run, resumes an open one (mainly after a crash of the client), or reopens an ended one. See
// docs/events.md, The life of a run.
#include "gateway/access.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/survey.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::string_view start_method = "run.start";

// Members that run.started copies as they were sent.
constexpr std::string_view kept_members[] = {"agent",       "goal",   "forked_from", "continues", "labels",
                                             "external_id", "client", "cwd",         "vcs",       "import"};

Reply resumed_reply(const store::Run& run, std::int64_t next_run_seq, bool duplicate = false) {
  json::Writer out;
  out.begin_object()
      .member("run_id", run.run_id)
      .member("seq", run.view().first_seq)
      .member("run_seq", next_run_seq)
      .member("resumed", true);
  if (duplicate) out.member("duplicate", true);
  out.end_object();
  return {std::move(out).text(), {}};
}

// Reads the table like every other read, so that this reply is not older than a previous one.
Result<Answer> resume(Call& call, const store::Run& run, bool duplicate) {
  if (!call.reader) return NeedsWorker{};
  ASSIGN_OR_RETURN(const std::int64_t next_run_seq, call.reader->next_run_seq(run.view().run_no));
  return resumed_reply(run, next_run_seq, duplicate);
}

// A repeated start request does not resume a run that has ended or stopped since.
Reply repeated_reply(const store::Run& run) {
  json::Writer out;
  out.begin_object()
      .member("run_id", run.run_id)
      .member("seq", run.view().first_seq)
      .member("run_seq", 1)
      .member("resumed", false)
      .member("duplicate", true)
      .end_object();
  return {std::move(out).text(), {}};
}

Reply started_reply(std::string_view run_id, const events::Receipt& receipt, bool reopened) {
  json::Writer out;
  out.begin_object()
      .member("run_id", run_id)
      .member("seq", receipt.seq)
      .member("run_seq", receipt.run_seq + 1)
      .member("resumed", reopened);
  if (reopened) out.member("reopened", true);
  out.raw_member("receipt", receipt_json(receipt)).end_object();
  return {std::move(out).text(), {}};
}

Error run_taken(const std::string& run_id) {
  Error error = taken("run_id", run_id);
  error.run_id = run_id;
  return error;
}

// The idempotency key names the run only if the request has no run_id.
bool named_by_key(const Call& call) { return !call.params["run_id"] && !call.idempotency_key.empty(); }

std::string chosen_run_id(const Call& call) {
  if (const auto given = call.params["run_id"].as_string()) return *given;
  // The same key yields the same run id, so a repeated request finds its run.
  if (named_by_key(call)) return idempotent_id(call.caller, start_method, call.idempotency_key).text();
  return make_uuid_v7(call.services.clock.now()).text();
}

// Compares JSON values regardless of spaces, the order of members and escapes.
bool same(const json::Value& held, const json::Value& said) {
  return held.present() == said.present() && (!held || json::canonical(held) == json::canonical(said));
}

// Members that the daemon fills in are not compared with a repeated request that omits them: the setting and the
// parent's length may have changed.
bool starts_as(const json::Value& held, const json::Value& said) {
  for (const std::string_view name : kept_members) {
    if (!same(held[name], said[name])) return false;
  }
  const json::Value parent = said["parent"];
  if (!same(held["parent"]["run_id"], parent["run_id"])) return false;
  if (parent["run_seq"] && !same(held["parent"]["run_seq"], parent["run_seq"])) return false;
  return !said["indexed"] || said["indexed"].as_bool() == held["indexed"].as_bool().value_or(false);
}

// Checks that this request started the run that its key names. Errors: conflict if it differs, or if the recorded event
// was erased.
Status check_same_start(Call& call, const store::Run& run) {
  ASSIGN_OR_RETURN(const auto first, call.reader->event_of_run(run.view().run_no, 0));
  if (!first)
    return Error(Errc::corrupt, "run " + run.run_id + " has no first event. The log was modified: run muniment-verify");
  if (!first->body) return used_key(*first);
  ASSIGN_OR_RETURN(const json::Document document, json::parse(*first->body));
  return starts_as(document.root(), call.params) ? success() : Status(used_key(*first));
}

// Returns {"run_id":…, "run_seq":…}: the position in the parent at which the run was started (default: the current
// position).
std::string parent_member(const json::Value& parent, const store::Run& run) {
  json::Writer out;
  out.begin_object()
      .member("run_id", run.run_id)
      .member("run_seq", parent["run_seq"].as_int().value_or(run.next_run_seq()))
      .end_object();
  return std::move(out).text();
}

Result<std::string> started_body(const Call& call, std::string_view run_id, const store::Run* parent) {
  json::Writer out;
  out.begin_object().member("run_id", run_id);
  for (std::string_view name : kept_members) {
    if (const json::Value value = call.params[name]) out.raw_member(name, value.source());
  }
  // Decided at the start, so that the content of the corpus run is a function of the log and independent of later
  // settings.
  if (call.params["indexed"].as_bool().value_or(call.services.index_runs)) out.member("indexed", true);
  if (parent) out.raw_member("parent", parent_member(call.params["parent"], *parent));
  out.end_object();
  RETURN_IF_ERROR(events::check_body_size(out.text().size(), "run.start as an event",
                                          "Shorten the goal and labels, or store the rest with artifact.put."));
  return std::move(out).text();
}

events::NewEvent child_started(Call& call, std::string_view child, const store::Run& parent) {
  const json::Value given = call.params["parent"];
  json::Writer out;
  out.begin_object().member("run_id", child).member("kind", given["kind"].string_or("subagent"));
  if (const json::Value call_id = given["call_id"]) out.raw_member("call_id", call_id.source());
  out.end_object();
  return make_event(call, parent, "child.started", std::move(out).text());
}

// The appender accepts one start per run. If it refuses a second one, a concurrent request was faster. If that came
// from the same caller, its run is returned.
Result<Reply> second_start(const store::Run& run, const Caller& caller, Error error) {
  const store::RunView view = run.view();
  if (error.code != Errc::conflict || view.status == store::RunStatus::absent) return error;
  if (!may_see(caller, view)) return run_taken(run.run_id);
  // The refusal came after all events that the caller can have read, so memory includes them.
  if (view.status == store::RunStatus::open) return resumed_reply(run, run.next_run_seq());
  return error;
}

Result<Answer> start_new(Call& call, std::string run_id) {
  std::shared_ptr<store::Run> parent;
  if (const json::Value given = call.params["parent"]) {
    ASSIGN_OR_RETURN(parent, find_run(call, given["run_id"].string_or("")));
    if (!parent) return NeedsWorker{};
  }
  ASSIGN_OR_RETURN(std::string body, started_body(call, run_id, parent.get()));
  auto run = call.services.runs.insert(std::make_shared<store::Run>(std::move(run_id)));

  PendingAppend append;
  append.request.actor = call.caller.actor;
  events::NewEvent started = make_event(call, *run, "run.started", std::move(body));
  if (call.params["import"]) started.origin = events::Origin::imported;
  if (named_by_key(call)) {  // a second, concurrent request is returned for retry and finds the first
    started.event_id = idempotent_id(call.caller, start_method, call.idempotency_key, 1);
    started.event_id_is_ours = false;
    append.request.ids_checked = call.check_ids;
  }
  append.request.events.push_back({run, std::move(started), false});
  if (parent) {
    append.request.events.push_back({parent, child_started(call, run->run_id, *parent), true});
  }
  append.finish = [run](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return started_reply(run->run_id, receipts.front(), false);
  };
  append.refused = [run, caller = call.caller](Services&, Error error) {
    return second_start(*run, caller, std::move(error));
  };
  return append;
}

// Ending a stopped run does not restore what stopped it.
Status check_recovered(Call& call, const store::Run& run) {
  if (!run.view().halt) return success();
  ASSIGN_OR_RETURN(const Survey found, survey(call, run));
  if (found.damage.empty()) return success();
  Error error = halted_error(run);
  error.message +=
      ". It was ended without being recovered, and cannot be reopened while what stopped it is damaged: repair it with muniment recover, or start "
      "a new run that names this one in `continues`";
  return error;
}

Result<Answer> reopen(Call& call, const std::shared_ptr<store::Run>& run) {
  if (run->view().halt && !call.reader) return Answer(NeedsWorker{});
  RETURN_IF_ERROR(check_recovered(call, *run));
  json::Writer body;
  body.begin_object()
      .member("kind", "reopened")
      .member("why", call.params["why"].string_or("run.start with reopen"))
      .end_object();
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.events.push_back({run, make_event(call, *run, "run.resumed", std::move(body).text()), false});
  append.finish = [run](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return started_reply(run->run_id, receipts.front(), true);
  };
  append.refused = [run, caller = call.caller](Services&, Error error) {
    return second_start(*run, caller, std::move(error));
  };
  return append;
}

}  // namespace

Result<Answer> run_start(Call& call) {
  std::string run_id = chosen_run_id(call);
  RETURN_IF_ERROR(check_run_id(run_id));
  const bool is_new_for_sure = !call.params["run_id"] && call.idempotency_key.empty();
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> known,
                   is_new_for_sure ? std::shared_ptr<store::Run>() : load_run(call, run_id));
  if (!known) {
    if (is_new_for_sure) return start_new(call, std::move(run_id));
    if (!call.reader) return NeedsWorker{};
    // A run name is unique, also across the logs that this one continues.
    ASSIGN_OR_RETURN(const auto closed, find_earlier_run(call, run_id));
    if (!closed) return start_new(call, std::move(run_id));
    if (may_see(call.caller, closed->view())) return store::closed_error(*closed);
    return run_taken(run_id);
  }
  const store::RunView view = known->view();
  if (view.status == store::RunStatus::absent) return start_new(call, std::move(run_id));
  if (!may_see(call.caller, view)) return run_taken(run_id);
  const bool reopens = call.params["reopen"].as_bool().value_or(false);
  const bool repeated = named_by_key(call) && !reopens;
  if (named_by_key(call)) {
    if (!call.reader) return NeedsWorker{};
    RETURN_IF_ERROR(check_same_start(call, *known));
  }
  if (repeated && view.status != store::RunStatus::open) return repeated_reply(*known);
  switch (view.status) {
    case store::RunStatus::open: return resume(call, *known, repeated);
    case store::RunStatus::ended:
      if (reopens) return reopen(call, known);
      return ended_error(*known);
    case store::RunStatus::halted: return halted_error(*known);
    case store::RunStatus::absent: break;
  }
  return ended_error(*known);
}

}  // namespace muniment::gateway::methods
