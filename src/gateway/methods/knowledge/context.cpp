// context.build: turns questions into a context pack within a budget (retrieval/query/pack.hpp). A manifest lists the
// included and the excluded passages with reasons; it belongs to the run that the context is for, otherwise to _log.
// Manifest and context.built share one commit, and the pack is returned after it.
#include <utility>

#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/packs.hpp"
#include "gateway/methods/knowledge/questions.hpp"
#include "gateway/methods/log/manifest_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/index_wait.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
namespace {

std::string built_body(const retrieval::PackBuilding& building, const Uuid& manifest_id, const std::string& branch,
                       std::int64_t duration_us) {
  json::Writer out;
  out.begin_object().member("manifest_id", manifest_id.text());
  if (!branch.empty()) out.member("branch", branch);
  write_questions(out, building);
  out.member("passages", building.pack.passages.size()).member("left_out", building.pack.left_out.size());
  write_budget(out, building);
  out.member("duration_us", duration_us);
  return std::move(out.end_object()).text();
}

}  // namespace

Result<Answer> context_build(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const Monotonic began = call.services.clock.monotonic();
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, run_of_pack(call));
  ASSIGN_OR_RETURN(const retrieval::Question common, common_question(call));
  ASSIGN_OR_RETURN(retrieval::PackBuilding building, retrieval::pack_of(call.params, common));
  RETURN_IF_ERROR(wait_for_min_seq(call));
  RETURN_IF_ERROR(begin_referring(call));
  RETURN_IF_ERROR(find_candidates(call, building));
  evidence::Outcome outcome;
  if (!building.unverified.empty()) {
    ASSIGN_OR_RETURN(outcome,
                     resolve_pointers(call, building.unverified, {.run = run, .depth = evidence::Depth::whole}));
    if (!outcome.halts.empty()) return stop(outcome, run);
  }
  RETURN_IF_ERROR(fill_pack(building, call.params, call.deadline));

  json::Writer manifest;
  manifest.begin_object().member("kind", "context_pack");
  if (building.confidence) manifest.member("confidence", *building.confidence);
  write_selection(manifest, building);
  const store::ManifestRow row =
      make_manifest(make_uuid_v7(call.services.clock.now()), run->run_id, std::move(manifest.end_object()).text());
  const std::int64_t duration_us = call.services.clock.micros_since(began);
  PendingAppend append =
      record_pack(call, run, row, "context.built",
                  built_body(building, row.manifest_id, call.params["branch"].string_or(""), duration_us));
  log_outcome(outcome, append.request);
  append.finish = [reply = pack_reply(building), id = row.manifest_id.text(), named = run->run_id != log_run_id](
                      Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    json::Writer out = reply;
    out.member("manifest_id", id).member("seq", receipts.back().seq);
    if (named) out.member("run_seq", receipts.back().run_seq);
    return Reply{std::move(out.end_object()).text(), {}};
  };
  return Answer(std::move(append));
}

}  // namespace muniment::gateway::methods
