// context.build: turns questions into a context pack within a budget (retrieval/query/pack.hpp). A manifest lists the
// included and the excluded passages with reasons; it belongs to the run that the context is for, otherwise to _log.
// Manifest and context.built share one commit, and the pack is returned after it.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "gateway/access.hpp"
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

constexpr std::size_t manifest_entry_bytes_max = 200;  // size of an entry without its pointer

// The questions, the candidates and the pack.
struct Building {
  std::vector<retrieval::Question> questions;
  std::vector<retrieval::Passage> candidates;
  std::vector<std::string> degraded;
  std::vector<std::string> unverified;
  std::string reason;  // reason for no candidates, from the first query
  std::int64_t count = 0;
  std::string profile;
  std::string plan_hash;  // plan hash of the last query
  std::int64_t watermark = 0;
  std::optional<std::int64_t> as_of;
  retrieval::Budget budget;
  retrieval::Pack pack;
};

Result<std::shared_ptr<store::Run>> run_of(Call& call) {
  const auto run_id = call.params["run_id"].as_string();
  if (!run_id) return call.services.runs.find(log_run_id);
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, find_run(call, *run_id));
  RETURN_IF_ERROR(check_open(*run));
  return run;
}

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

retrieval::Passage passage_of(retrieval::Card card) {
  retrieval::Passage passage;
  passage.pointer = std::move(card.passage_id);
  passage.corpus = std::move(card.corpus);
  passage.document = std::move(card.document);
  passage.revision = std::move(card.revision);
  passage.title = std::move(card.title);
  passage.anchors = std::move(card.anchors);
  passage.trust = std::move(card.trust);
  passage.origin = std::move(card.origin);
  passage.text = std::move(card.text);
  passage.start = card.start;
  passage.end = card.end;
  passage.source_url = std::move(card.source_url);
  passage.score = card.score;
  passage.after_question = card.after_question;
  return passage;
}

// Runs every query and fills in all members except the pack.
Status find_candidates(Call& call, Building& building) {
  const retrieval::Retriever& retriever = call.services.retrieval.retriever();
  ASSIGN_OR_RETURN(const retrieval::Scope scope, scope_of(call));
  std::vector<std::vector<retrieval::Passage>> lists;
  for (const retrieval::Question& question : building.questions) {
    ASSIGN_OR_RETURN(const retrieval::Retriever::Plan plan,
                     retriever.plan(question, scope, *call.reader, call.services.tail, call.deadline));
    ASSIGN_OR_RETURN(retrieval::Answer answer, retriever.answer(plan, *call.reader, call.deadline));
    auto& list = lists.emplace_back();
    for (retrieval::Card& card : answer.cards) list.push_back(passage_of(std::move(card)));
    for (std::string& words : answer.degraded) {
      if (std::ranges::find(building.degraded, words) == building.degraded.end())
        building.degraded.push_back(std::move(words));
    }
    building.unverified.insert(building.unverified.end(), answer.unverified.begin(), answer.unverified.end());
    if (building.reason.empty()) std::tie(building.reason, building.count) = std::pair(answer.reason, answer.count);
    building.profile = std::move(answer.profile);
    building.plan_hash = std::move(answer.plan_hash);
    building.watermark = answer.watermark;
    building.as_of = answer.as_of;
  }
  building.candidates = retrieval::merged_by_rank(std::move(lists));
  if (building.candidates.size() > limits::pack_candidates_max) building.candidates.resize(limits::pack_candidates_max);
  return success();
}

void write_left_out(json::Writer& out, const Building& building, const retrieval::LeftOut& item) {
  const retrieval::Passage& passage = building.candidates[item.candidate];
  out.begin_object()
      .member("id", passage.pointer)
      .member("rank", passage.rank)
      .member("why", name_of(item.why))
      .member("bytes", passage.text.size());
  if (item.instead > 0) out.member("instead", item.instead);
  out.end_object();
}

void write_budget(json::Writer& out, const Building& building) {
  out.member("unit", name_of(building.budget.unit))
      .member("budget", building.budget.amount)
      .member("used", building.pack.used);
}

void write_questions(json::Writer& out, const Building& building) {
  out.key("queries").begin_array();
  for (const retrieval::Question& question : building.questions) {
    out.begin_object().member("query", preview(question.text, limits::pack_logged_query_bytes_max));
    if (!question.corpora.empty()) out.member("corpus", question.corpora.front());
    out.end_object();
  }
  out.end_array();
}

// Lists the excluded passages as far as they fit.
std::string manifest_text(const Building& building) {
  json::Writer out;
  out.begin_object().member("kind", "context_pack");
  write_questions(out, building);
  out.member("profile", building.profile)
      .member("plan_hash", building.plan_hash)
      .member("watermark", building.watermark);
  if (building.as_of) out.member("asof", *building.as_of);
  write_budget(out, building);
  out.member("text_hash", to_hex(sha256(building.pack.text))).key("passages").begin_array();
  for (const retrieval::Packed& packed : building.pack.passages) {
    const retrieval::Passage& passage = building.candidates[packed.candidate];
    out.begin_object()
        .member("n", packed.number)
        .member("pointer", passage.pointer)
        .member("hash", to_hex(packed.hash))
        .member("trust", passage.trust);
    out.member("rank", passage.rank).key("queries").begin_array();
    for (const std::size_t query : passage.queries) out.number(static_cast<std::int64_t>(query));
    out.end_array().member("score", passage.score).member("bytes", passage.text.size()).member("cost", packed.cost);
    if (passage.after_question) out.member("after_question", 1);
    out.end_object();
  }
  out.end_array().member("left_out_count", building.pack.left_out.size()).key("left_out").begin_array();
  for (const retrieval::LeftOut& item : building.pack.left_out) {
    if (out.text().size() + building.candidates[item.candidate].pointer.size() + manifest_entry_bytes_max >
        limits::manifest_bytes_max)
      break;
    write_left_out(out, building, item);
  }
  out.end_array();
  return std::move(out.end_object()).text();
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
  out.member("revision", passage.revision).member("score", passage.score);
  if (passage.source_url) out.member("sourceUrl", *passage.source_url);
  out.end_object();
}

// Writes the reply except for its last members, which the commit supplies.
json::Writer reply_begun(const Building& building) {
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
  if (building.candidates.empty() && !building.reason.empty())
    out.member("reason", building.reason);
  else if (building.pack.passages.empty() && !building.candidates.empty())
    out.member("reason", "budget_too_small");
  if (building.candidates.empty() && building.count > 0) out.member("count", building.count);
  if (!building.degraded.empty()) out.member("degraded", building.degraded);
  out.member("profile", building.profile).member("watermark", building.watermark);
  if (building.as_of) out.member("asof", *building.as_of);
  return out;
}

std::string built_body(const Building& building, const Uuid& manifest_id, const std::string& branch,
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
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, run_of(call));
  Building building;
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

  const store::ManifestRow row =
      make_manifest(make_uuid_v7(call.services.clock.now()), run->run_id, manifest_text(building));
  const std::int64_t duration_us = call.services.clock.micros_since(began);
  const std::string step_id = call.params["step_id"].string_or("");
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.events.push_back(
      {run, make_event(call, *run, "manifest.recorded", manifest_recorded_body(row), step_id), false});
  append.request.events.push_back(
      {run,
       make_event(call, *run, "context.built",
                  built_body(building, row.manifest_id, call.params["branch"].string_or(""), duration_us), step_id),
       false});
  append.request.rows.push_back({0, row});
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
