// Builds and records context packs.
#include "gateway/methods/knowledge/packs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/questions.hpp"
#include "gateway/methods/log/manifest_rows.hpp"
#include "gateway/services.hpp"
#include "retrieval/answer/extractive.hpp"
#include "retrieval/answer/statement.hpp"
#include "retrieval/plan/markup.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::size_t manifest_entry_bytes_max = 200;  // size of an entry without its pointer

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
  passage.language = std::move(card.language);
  passage.lanes = std::move(card.scores);
  passage.score = card.score;
  passage.after_question = card.after_question;
  passage.whole = card.whole;
  if (card.whole) passage.statement = retrieval::statement_of(passage.text, passage.language).key;
  passage.source = std::move(card.named_source);
  passage.time = std::move(card.freshness);
  passage.replaces = std::move(card.replaces);
  passage.newer = std::move(card.newer);
  return passage;
}

}  // namespace

Result<std::shared_ptr<store::Run>> run_of_pack(Call& call) {
  const auto run_id = call.params["run_id"].as_string();
  if (!run_id) return call.services.runs.find(log_run_id);
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, find_run(call, *run_id));
  RETURN_IF_ERROR(check_open(*run));
  return run;
}

Status find_candidates(Call& call, PackBuilding& building) {
  const retrieval::Retriever& retriever = call.services.retrieval.retriever();
  ASSIGN_OR_RETURN(retrieval::Scope scope, scope_of(call));
  std::erase(scope.corpora, building.left_out_corpus);
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
    building.expired += answer.expired;
    if (building.reason.empty()) std::tie(building.reason, building.count) = std::pair(answer.reason, answer.count);
    building.profile = std::move(answer.profile);
    building.plan_hash = std::move(answer.plan_hash);
    building.watermark = answer.watermark;
    building.indexed = answer.indexed;
    building.as_of = answer.as_of;
  }
  building.candidates = retrieval::merged_by_rank(std::move(lists));
  if (building.candidates.size() > limits::pack_candidates_max) building.candidates.resize(limits::pack_candidates_max);
  return success();
}

std::string words_of_question(const std::string& question) {
  const retrieval::Markup markup = retrieval::parse_markup(question);
  std::string words = markup.text;
  for (const std::string& phrase : markup.phrases) words += " " + phrase;
  return words;
}

std::vector<retrieval::AnswerSource> sources_of(const PackBuilding& building, std::size_t passages) {
  std::vector<retrieval::AnswerSource> sources;
  for (std::size_t i = 0; i < std::min(passages, building.pack.passages.size()); ++i) {
    const retrieval::Passage& passage = building.candidates[building.pack.passages[i].candidate];
    sources.push_back({passage.text, passage.title,
                       passage.anchors.empty() ? std::string_view() : std::string_view(passage.anchors.front()),
                       passage.language, passage.score});
    for (std::size_t newer = 0; newer < i && !passage.newer.empty(); ++newer) {
      if (building.candidates[building.pack.passages[newer].candidate].pointer == passage.newer)
        sources.back().newer = newer;
    }
  }
  return sources;
}

Result<JudgedPack> judge_passages(const PackBuilding& building, const retrieval::DraftRequest& request,
                                  Deadline deadline) {
  JudgedPack judged;
  ASSIGN_OR_RETURN(judged.draft, retrieval::ExtractiveDrafter().draft(request, deadline));
  std::vector<retrieval::RankedScore> scores;
  for (const retrieval::Passage& passage : building.candidates) {
    if (!passage.after_question) scores.push_back({passage.score, passage.lanes});
  }
  judged.signals = retrieval::signals_of(scores, building.indexed);
  judged.signals.coverage = judged.draft.coverage;
  judged.signals.words = std::log1p(static_cast<double>(judged.draft.words));
  judged.confidence = judged.draft.sentences.empty() ? 0 : retrieval::answer_confidence(judged.signals);
  return judged;
}

void write_left_out(json::Writer& out, const PackBuilding& building, const retrieval::LeftOut& item) {
  const retrieval::Passage& passage = building.candidates[item.candidate];
  out.begin_object()
      .member("id", passage.pointer)
      .member("rank", passage.rank)
      .member("why", name_of(item.why))
      .member("bytes", passage.text.size());
  if (item.instead > 0) out.member("instead", item.instead);
  out.end_object();
}

void write_budget(json::Writer& out, const PackBuilding& building) {
  out.member("unit", name_of(building.budget.unit))
      .member("budget", building.budget.amount)
      .member("used", building.pack.used);
}

void write_questions(json::Writer& out, const PackBuilding& building, std::size_t bytes_max) {
  out.key("queries").begin_array();
  for (const retrieval::Question& question : building.questions) {
    out.begin_object().member("query", preview(question.text, bytes_max));
    if (!question.corpora.empty()) out.member("corpus", question.corpora.front());
    out.end_object();
  }
  out.end_array();
}

void write_selection(json::Writer& out, const PackBuilding& building) {
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
