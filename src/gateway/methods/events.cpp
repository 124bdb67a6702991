// event.append: the hot path. On the loop thread it only reads what is in memory; what needs a file
// or Postgres (a run that is not loaded, ids that may be known) goes to a worker.
#include "gateway/access.hpp"
#include "gateway/append_admission.hpp"
#include "gateway/event_json.hpp"
#include "gateway/first_receipts.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

Reply append_reply(bool several, const std::vector<events::Receipt>& receipts) {
  Reply reply;
  if (!several) {
    append_receipt_json(reply.result, receipts.front());
    return reply;
  }
  reply.result.reserve(16 + receipts.size() * 480);
  reply.result = "{\"receipts\":[";
  for (const events::Receipt& receipt : receipts) {
    if (&receipt != &receipts.front()) reply.result.push_back(',');
    append_receipt_json(reply.result, receipt);
  }
  reply.result += "]}";
  return reply;
}

}  // namespace

Result<Answer> event_append(Call& call) {
  std::string run_id = call.params["run_id"].string_or("");
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, find_run(call, run_id));
  if (!run) return NeedsWorker{};
  if (run_id == log_run_id) RETURN_IF_ERROR(check_open(*run));

  ASSIGN_OR_RETURN(AdmittedAppend admitted,
                   admit_append(call.params, call.caller, call.idempotency_key, run->view().origin,
                                call.services.clock.now()));
  const bool several = admitted.several;
  ASSIGN_OR_RETURN(std::vector<events::NewEvent> events, seal_bodies(std::move(admitted)));
  if (call.check_ids) {
    if (!call.reader) return NeedsWorker{};
    ASSIGN_OR_RETURN(const auto first, first_receipts(call, *run, events));
    if (first) return append_reply(several, *first);
  }

  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.ids_checked = call.check_ids;
  append.request.expected_run_seq = call.params["expected_run_seq"].as_int();
  append.request.events.reserve(events.size());
  for (events::NewEvent& event : events) {
    append.request.events.push_back({run, std::move(event), false});
  }
  append.finish = [several](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return append_reply(several, receipts);
  };
  return append;
}

}  // namespace muniment::gateway::methods
