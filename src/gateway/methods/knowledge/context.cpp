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
#include "retrieval/query/pack.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::string_view low_confidence = "low_confidence";

Result<retrieval::Budget> budget_of(const json::Value& params) {
  const auto tokens = params["budget_tokens"].as_int();
  const auto bytes = params["budget_bytes"].as_int();
  if (tokens && bytes)
    return Error(Errc::invalid_argument, "budget_tokens and budget_bytes: a pack has one budget. Give one of them.");
  if (bytes) return retrieval::Budget{retrieval::BudgetUnit::bytes, static_cast<std::size_t>(*bytes)};
  return retrieval::Budget{retrieval::BudgetUnit::tokens,
                           tokens ? static_cast<std::size_t>(*tokens) : limits::pack_tokens_default};
}

Result<std::vector<retrieval::Question>> questions_of(Call& call) {
  const json::Value& params = call.params;
  if (params["query"].present() == params["queries"].present()) {
    return Error(Errc::invalid_argument, "a pack is built for a query, or for queries. Give one of them.");
  }
  ASSIGN_OR_RETURN(retrieval::Question common, common_question(call));
  if (!params["topK"]) common.top_k = limits::pack_cards_default;
  common.after_questions = true;
  if (params["trust"] && params["filters"]["trust"])
    return Error(Errc::invalid_argument, "trust and filters.trust are the same filter. Give one of them.");
  for (const json::Value item : params["trust"]) common.wishes.trust.push_back(item.string_or(""));
  if (const auto corpus = params["corpus"].as_string()) common.corpora = {*corpus};
  std::vector<retrieval::Question> questions;
  if (const auto query = params["query"].as_string()) {
    questions.push_back(common);
    questions.back().text = *query;
  }
  for (const json::Value item : params["queries"]) {
    questions.push_back(common);
    questions.back().text = item["query"].string_or("");
    if (const auto corpus = item["corpus"].as_string()) questions.back().corpora = {*corpus};
  }
  return questions;
}

// Judges the pack as `ask` does, by as many passages. A pack below the requested confidence is emptied.
Status judge_pack(Call& call, PackBuilding& building) {
  if (building.questions.size() != 1 || building.pack.passages.empty()) return success();
  const std::string words = words_of_question(building.questions.front().text);
  const auto sources = sources_of(building, limits::ask_passages_default);
  ASSIGN_OR_RETURN(const JudgedPack judged, judge_passages(building, {words, sources, {}}, call.deadline));
  building.confidence = judged.confidence;
  if (judged.confidence >= call.params["min_confidence"].as_double().value_or(0)) return success();
  building.pack = {};
  building.reason = low_confidence;
  return success();
}

void write_passage(json::Writer& out, const retrieval::Passage& passage, std::size_t number) {
  out.begin_object()
      .member("n", number)
      .member("id", passage.pointer)
      .member("corpus", passage.corpus)
      .member("document", passage.document);
  out.member("title", passage.title).member("anchors", passage.anchors).member("trust", passage.trust);
  if (!passage.origin.empty()) out.member("origin", passage.origin);
  out.raw_member("text", retrieval::quote_for_prompt(passage.text)).key("span");
  out.begin_object().member("start", passage.start).member("end", passage.end).end_object();
  out.member("revision", passage.revision).member("score", passage.score).member("freshness", passage.time);
  if (!passage.source.empty()) out.member("source", passage.source);
  if (!passage.replaces.empty()) out.member("replaces", passage.replaces);
  if (!passage.newer.empty()) out.member("newer", passage.newer);
  if (passage.source_url) out.member("sourceUrl", *passage.source_url);
  out.end_object();
}

// Writes the reply except for its last members, which the commit supplies.
json::Writer reply_begun(const PackBuilding& building) {
  json::Writer out;
  out.begin_object().key("pack").begin_object().key("passages").begin_array();
  for (const retrieval::Packed& packed : building.pack.passages)
    write_passage(out, building.candidates[packed.candidate], packed.number);
  out.end_array().end_object().member("text", building.pack.text).key("citations").begin_array();
  for (const retrieval::Packed& packed : building.pack.passages) {
    out.begin_object()
        .member("n", packed.number)
        .member("pointer", building.candidates[packed.candidate].pointer)
        .member("hash", to_hex(packed.hash))
        .end_object();
  }
  out.end_array();
  write_budget(out, building);
  out.key("left_out").begin_array();
  for (const retrieval::LeftOut& item : building.pack.left_out) write_left_out(out, building, item);
  out.end_array();
  if (building.confidence) out.member("confidence", *building.confidence);
  if ((building.candidates.empty() && !building.reason.empty()) || building.reason == low_confidence)
    out.member("reason", building.reason);
  else if (building.pack.passages.empty() && !building.candidates.empty())
    out.member("reason", "budget_too_small");
  if (building.candidates.empty() && building.count > 0) out.member("count", building.count);
  if (building.expired > 0) out.member("expired", building.expired);
  if (!building.degraded.empty()) out.member("degraded", building.degraded);
  out.member("profile", building.profile).member("watermark", building.watermark);
  if (building.as_of) out.member("asof", *building.as_of);
  return out;
}

std::string built_body(const PackBuilding& building, const Uuid& manifest_id, const std::string& branch,
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
  PackBuilding building;
  ASSIGN_OR_RETURN(building.budget, budget_of(call.params));
  ASSIGN_OR_RETURN(building.questions, questions_of(call));
  RETURN_IF_ERROR(wait_for_min_seq(call));
  RETURN_IF_ERROR(begin_referring(call));
  RETURN_IF_ERROR(find_candidates(call, building));
  evidence::Outcome outcome;
  if (!building.unverified.empty()) {
    ASSIGN_OR_RETURN(outcome,
                     resolve_pointers(call, building.unverified, {.run = run, .depth = evidence::Depth::whole}));
    if (!outcome.halts.empty()) return stop(outcome, run);
  }
  building.pack = retrieval::make_pack(building.candidates, building.budget);
  RETURN_IF_ERROR(judge_pack(call, building));

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
  append.finish = [reply = reply_begun(building), id = row.manifest_id.text(), named = run->run_id != log_run_id](
                      Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    json::Writer out = reply;
    out.member("manifest_id", id).member("seq", receipts.back().seq);
    if (named) out.member("run_seq", receipts.back().run_seq);
    return Reply{std::move(out.end_object()).text(), {}};
  };
  return Answer(std::move(append));
}

}  // namespace muniment::gateway::methods
