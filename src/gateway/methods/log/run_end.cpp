// run.end and run.annotate append one event each. A halted run accepts both, and a repeated request with the same
// _meta.idempotency_key gets the first receipt.
#include "evidence/pointer_follower.hpp"
#include "gateway/access.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

Reply receipt_reply(std::string_view run_id, const events::Receipt& receipt) {
  json::Writer out;
  out.begin_object()
      .member("run_id", run_id)
      .member("seq", receipt.seq)
      .member("run_seq", receipt.run_seq)
      .raw_member("receipt", receipt_json(receipt))
      .end_object();
  return {std::move(out).text(), {}};
}

// Returns the parameters `names`, as sent, as a body.
Result<std::string> body_of(std::string_view method, const json::Value& params,
                            std::initializer_list<std::string_view> names) {
  json::Writer out;
  out.begin_object();
  for (std::string_view name : names) {
    if (const json::Value value = params[name]) out.raw_member(name, value.source());
  }
  out.end_object();
  RETURN_IF_ERROR(events::check_body_size(out.text().size(), std::string(method) + " as an event",
                                          "Shorten it, or store the text with artifact.put and name the artifact."));
  return std::move(out).text();
}

// Makes an event of the run; with an idempotency key its id is repeatable.
events::NewEvent repeatable_event(Call& call, const store::Run& run, std::string_view method, std::string_view type,
                                  std::string body) {
  events::NewEvent event = make_event(call, run, type, std::move(body));
  if (!call.idempotency_key.empty()) {
    event.event_id = idempotent_id(call.caller, method, call.idempotency_key);
    event.event_id_is_ours = false;
  }
  return event;
}

// Returns the reply to a repeated request, or appends a new event.
Result<Answer> append_once(Call& call, const std::shared_ptr<store::Run>& run, events::NewEvent event,
                           PendingAppend append) {
  if (call.check_ids) {
    if (!call.reader) return NeedsWorker{};
    ASSIGN_OR_RETURN(const auto first, first_receipts(call, *run, {&event, 1}));
    if (first) return receipt_reply(run->run_id, first->front());
  }
  append.request.actor = call.caller.actor;
  append.request.ids_checked = call.check_ids;
  // A run that a request before this one halts may end, but not as a success; an import states what its source says.
  const bool success = event.type == "run.ended" && call.params["outcome"].string_or("") == "success";
  store::Addressed item{run, std::move(event)};
  item.refused_halted = success && run->view().origin != events::Origin::imported;
  append.request.events.insert(append.request.events.begin(), std::move(item));
  append.finish = [run](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return receipt_reply(run->run_id, receipts.front());
  };
  return append;
}

// Checks that everything on which the run's claims, evidence and manifests depend is intact, since only such a run may
// end as a success. Returns nullopt if so.
Result<std::optional<Answer>> what_success_lacks(Call& call, const std::shared_ptr<store::Run>& run) {
  ASSIGN_OR_RETURN(const auto needed, evidence::pointers_needed_by(*run, call.services.tail, *call.reader));
  std::vector<std::string> pointers;
  for (const auto& [pointer, rows] : needed) pointers.push_back(pointer);
  ASSIGN_OR_RETURN(
      const evidence::Outcome outcome,
      look_at_pointers(call, pointers,
                       {.run = run, .critical = true, .depth = evidence::Depth::whole, .every_owner = true}));
  if (outcome.damage() == nullptr) {
    log_unwaited(call.services, outcome);
    return std::optional<Answer>();
  }
  ASSIGN_OR_RETURN(Answer answer, stop(outcome, run));
  return std::optional(std::move(answer));
}

Error no_success(const store::Run& run) {
  Error error = halted_error(run);
  error.message += " A stopped run cannot end as a success: recover it first, or end it with another outcome.";
  return error;
}

// Returns the refusal to end the run as a success; nullopt if there is no reason for one, or if a different check
// decides.
Result<std::optional<Answer>> refuse_success(Call& call, const std::shared_ptr<store::Run>& run,
                                             const events::NewEvent& event) {
  if (run->view().origin == events::Origin::imported) return std::optional<Answer>();  // the source states its outcome
  const store::RunStatus status = run->view().status;
  if (status != store::RunStatus::open && status != store::RunStatus::halted) return std::optional<Answer>();
  // A repeated request that was recorded as a success is not checked again, even if the run was reopened since.
  ASSIGN_OR_RETURN(const auto first, first_receipts(call, *run, {&event, 1}));
  if (first) return std::optional<Answer>(receipt_reply(run->run_id, first->front()));
  if (status == store::RunStatus::open) return what_success_lacks(call, run);
  return no_success(*run);
}

}  // namespace

Result<Answer> run_end(Call& call) {
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, find_run(call, call.params["run_id"].string_or("")));
  if (!run) return NeedsWorker{};
  ASSIGN_OR_RETURN(std::string body, body_of("run.end", call.params, {"outcome", "summary", "usage", "error"}));
  events::NewEvent event = repeatable_event(call, *run, "run.end", "run.ended", std::move(body));
  if (call.params["outcome"].string_or("") == "success") {
    if (!call.reader) return NeedsWorker{};
    ASSIGN_OR_RETURN(auto instead, refuse_success(call, run, event));
    if (instead) return *std::move(instead);
  }
  PendingAppend append;
  if (const std::string parent_id = run->view().parent; !parent_id.empty()) {
    ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> parent, load_run(call, parent_id));
    if (!parent && !call.reader) return NeedsWorker{};
    if (parent) {
      json::Writer ended;
      ended.begin_object()
          .member("run_id", run->run_id)
          .raw_member("outcome", call.params["outcome"].source())
          .end_object();
      append.request.events.push_back(
          {parent, make_event(call, *parent, "child.ended", std::move(ended).text()), true});
    }
  }
  return append_once(call, run, std::move(event), std::move(append));
}

Result<Answer> run_annotate(Call& call) {
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, find_run(call, call.params["run_id"].string_or("")));
  if (!run) return NeedsWorker{};
  if (run->run_id == log_run_id) RETURN_IF_ERROR(check_open(*run));
  ASSIGN_OR_RETURN(std::string body,
                   body_of("run.annotate", call.params, {"labels", "note", "legal_hold", "retain_until"}));
  if (body == "{}") {
    return Error(Errc::invalid_argument, "run.annotate needs one of labels, note, legal_hold, retain_until.");
  }
  // The reply to a legal hold or a retention date waits until no erasure of the run is in progress.
  if (call.params["legal_hold"] || call.params["retain_until"]) {
    if (!call.reader) return NeedsWorker{};
    RETURN_IF_ERROR(begin_referring(call));
  }
  return append_once(call, run, repeatable_event(call, *run, "run.annotate", "run.annotated", std::move(body)), {});
}

}  // namespace muniment::gateway::methods
