// Builds and records context packs.
#include "gateway/methods/knowledge/packs.hpp"

#include <utility>

#include "gateway/access.hpp"
#include "gateway/methods/knowledge/questions.hpp"
#include "gateway/methods/log/manifest_rows.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
Result<std::shared_ptr<store::Run>> run_of_pack(Call& call) {
  const auto run_id = call.params["run_id"].as_string();
  if (!run_id) return call.services.runs.find(log_run_id);
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, find_run(call, *run_id));
  RETURN_IF_ERROR(check_open(*run));
  return run;
}

Status find_candidates(Call& call, retrieval::PackBuilding& building) {
  const retrieval::Retriever& retriever = call.services.retrieval.retriever();
  ASSIGN_OR_RETURN(retrieval::Scope scope, scope_of(call));
  std::erase(scope.corpora, building.left_out_corpus);
  std::vector<retrieval::Answer> answers;
  for (const retrieval::Question& question : building.questions) {
    ASSIGN_OR_RETURN(const retrieval::Retriever::Plan plan,
                     retriever.plan(question, scope, *call.reader, call.services.tail, call.deadline));
    ASSIGN_OR_RETURN(retrieval::Answer answer, retriever.answer(plan, *call.reader, call.deadline));
    answers.push_back(std::move(answer));
  }
  take_answers(building, std::move(answers));
  return success();
}

PendingAppend record_pack(Call& call, const std::shared_ptr<store::Run>& run, const store::ManifestRow& manifest,
                          std::string_view type, std::string body) {
  const std::string step_id = call.params["step_id"].string_or("");
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.events.push_back(
      {run, make_event(call, *run, "manifest.recorded", manifest_recorded_body(manifest), step_id), false});
  append.request.events.push_back({run, make_event(call, *run, type, std::move(body), step_id), false});
  append.request.rows.push_back({0, manifest});
  return append;
}

}  // namespace muniment::gateway::methods
