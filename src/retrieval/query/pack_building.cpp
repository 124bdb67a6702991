// Builds, judges and writes context packs.
#include "retrieval/query/pack_building.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "retrieval/answer/extractive.hpp"
#include "retrieval/answer/statement.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::string_view low_confidence = "low_confidence";
constexpr std::size_t manifest_entry_bytes_max = 200;  // size of an entry without its pointer

Passage passage_of(Card card) {
  Passage passage;
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
  if (card.whole) passage.statement = statement_of(passage.text, passage.language).key;
  passage.source = std::move(card.named_source);
  passage.time = std::move(card.freshness);
  passage.replaces = std::move(card.replaces);
  passage.newer = std::move(card.newer);
  return passage;
}

Result<Budget> budget_of(const json::Value& params) {
  const auto tokens = params["budget_tokens"].as_int();
  const auto bytes = params["budget_bytes"].as_int();
  if (tokens && bytes)
    return Error(Errc::invalid_argument, "budget_tokens and budget_bytes: a pack has one budget. Give one of them.");
  if (bytes) return Budget{BudgetUnit::bytes, static_cast<std::size_t>(*bytes)};
  return Budget{BudgetUnit::tokens, tokens ? static_cast<std::size_t>(*tokens) : limits::pack_tokens_default};
}

Result<std::vector<Question>> questions_of(const json::Value& params, Question common) {
  if (params["query"].present() == params["queries"].present()) {
    return Error(Errc::invalid_argument, "a pack is built for a query, or for queries. Give one of them.");
  }
  if (!params["topK"]) common.top_k = limits::pack_cards_default;
  common.after_questions = true;
  if (params["trust"] && params["filters"]["trust"])
    return Error(Errc::invalid_argument, "trust and filters.trust are the same filter. Give one of them.");
  for (const json::Value item : params["trust"]) common.wishes.trust.push_back(item.string_or(""));
  if (const auto corpus = params["corpus"].as_string()) common.corpora = {*corpus};
  std::vector<Question> questions;
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
Status judge_pack(PackBuilding& building, const json::Value& params, Deadline deadline) {
  if (building.questions.size() != 1 || building.pack.passages.empty()) return success();
  const std::string words = words_of_question(building.questions.front().text);
  const auto sources = sources_of(building, limits::ask_passages_default);
  ASSIGN_OR_RETURN(const JudgedPack judged, judge_passages(building, {words, sources, {}}, deadline));
  building.confidence = judged.confidence;
  if (judged.confidence >= params["min_confidence"].as_double().value_or(0)) return success();
  building.pack = {};
  building.reason = low_confidence;
  return success();
}

void write_passage(json::Writer& out, const Passage& passage, std::size_t number) {
  out.begin_object()
      .member("n", number)
      .member("id", passage.pointer)
      .member("corpus", passage.corpus)
      .member("document", passage.document);
  out.member("title", passage.title).member("anchors", passage.anchors).member("trust", passage.trust);
  if (!passage.origin.empty()) out.member("origin", passage.origin);
  out.raw_member("text", quote_for_prompt(passage.text)).key("span");
  out.begin_object().member("start", passage.start).member("end", passage.end).end_object();
  out.member("revision", passage.revision).member("score", passage.score).member("freshness", passage.time);
  if (!passage.source.empty()) out.member("source", passage.source);
  if (!passage.replaces.empty()) out.member("replaces", passage.replaces);
  if (!passage.newer.empty()) out.member("newer", passage.newer);
  if (passage.source_url) out.member("sourceUrl", *passage.source_url);
  out.end_object();
}

}  // namespace

Result<PackBuilding> pack_of(const json::Value& params, Question common) {
  PackBuilding building;
  ASSIGN_OR_RETURN(building.budget, budget_of(params));
  ASSIGN_OR_RETURN(building.questions, questions_of(params, std::move(common)));
  return building;
}

void take_answers(PackBuilding& building, std::vector<Answer> answers) {
  std::vector<std::vector<Passage>> lists;
  for (Answer& answer : answers) {
    auto& list = lists.emplace_back();
    for (Card& card : answer.cards) list.push_back(passage_of(std::move(card)));
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
  building.candidates = merged_by_rank(std::move(lists));
  if (building.candidates.size() > limits::pack_candidates_max) building.candidates.resize(limits::pack_candidates_max);
}

Status fill_pack(PackBuilding& building, const json::Value& params, Deadline deadline) {
  building.pack = make_pack(building.candidates, building.budget);
  return judge_pack(building, params, deadline);
}

// Writes the reply except for its last members, which the commit supplies.
json::Writer pack_reply(const PackBuilding& building) {
  json::Writer out;
  out.begin_object().key("pack").begin_object().key("passages").begin_array();
  for (const Packed& packed : building.pack.passages)
    write_passage(out, building.candidates[packed.candidate], packed.number);
  out.end_array().end_object().member("text", building.pack.text).key("citations").begin_array();
  for (const Packed& packed : building.pack.passages) {
    out.begin_object()
        .member("n", packed.number)
        .member("pointer", building.candidates[packed.candidate].pointer)
        .member("hash", to_hex(packed.hash))
        .end_object();
  }
  out.end_array();
  write_budget(out, building);
  out.key("left_out").begin_array();
  for (const LeftOut& item : building.pack.left_out) write_left_out(out, building, item);
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

std::string words_of_question(const std::string& question) {
  const Markup markup = parse_markup(question);
  std::string words = markup.text;
  for (const std::string& phrase : markup.phrases) words += " " + phrase;
  return words;
}

std::vector<AnswerSource> sources_of(const PackBuilding& building, std::size_t passages) {
  std::vector<AnswerSource> sources;
  for (std::size_t i = 0; i < std::min(passages, building.pack.passages.size()); ++i) {
    const Passage& passage = building.candidates[building.pack.passages[i].candidate];
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

Result<JudgedPack> judge_passages(const PackBuilding& building, const DraftRequest& request, Deadline deadline) {
  JudgedPack judged;
  ASSIGN_OR_RETURN(judged.draft, ExtractiveDrafter().draft(request, deadline));
  std::vector<RankedScore> scores;
  for (const Passage& passage : building.candidates) {
    if (!passage.after_question) scores.push_back({passage.score, passage.lanes});
  }
  judged.signals = signals_of(scores, building.indexed);
  judged.signals.coverage = judged.draft.coverage;
  judged.signals.words = std::log1p(static_cast<double>(judged.draft.words));
  judged.confidence = judged.draft.sentences.empty() ? 0 : answer_confidence(judged.signals);
  return judged;
}

void write_left_out(json::Writer& out, const PackBuilding& building, const LeftOut& item) {
  const Passage& passage = building.candidates[item.candidate];
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
  for (const Question& question : building.questions) {
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
  for (const Packed& packed : building.pack.passages) {
    const Passage& passage = building.candidates[packed.candidate];
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
  for (const LeftOut& item : building.pack.left_out) {
    if (out.text().size() + building.candidates[item.candidate].pointer.size() + manifest_entry_bytes_max >
        limits::manifest_bytes_max)
      break;
    write_left_out(out, building, item);
  }
  out.end_array();
}

}  // namespace muniment::retrieval
