// evidence.retrieve: answers queries with cards. The queries and results are recorded as an event of the run that
// asked, or of _log.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/metrics.hpp"
#include "base/text.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/questions.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/corpora.hpp"
#include "gateway/read/index_wait.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/read/trace.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
namespace {

// Returns the logged record of a request, taken from the results, and counts it.
std::string answered_body(Services& services, const std::vector<retrieval::Question>& questions,
                          const std::vector<std::string>& results, bool hit, std::int64_t duration_us) {
  services.counters.queries += static_cast<std::int64_t>(questions.size());
  metrics::process().query_seconds.record(duration_us);
  json::Writer out;
  out.begin_object().key("queries").begin_array();
  for (const retrieval::Question& question : questions) {
    out.begin_object().member("query", question.text.substr(0, limits::logged_query_bytes_max));
    out.member("expand", name_of(question.expand)).member("rerank", name_of(question.rerank)).end_object();
  }
  out.end_array();
  std::string profile, plan_hash;
  std::int64_t watermark = 0;
  json::Writer cards;
  std::set<std::string> corpora;
  std::size_t logged = 0;
  cards.begin_array();
  for (const std::string& text : results) {
    const auto parsed = json::parse(text);
    if (!parsed) continue;
    const json::Value result = parsed->root();
    profile = result["profile"].string_or("");
    plan_hash = result["plan_hash"].string_or("");
    watermark = result["watermark"].as_int().value_or(0);
    std::int64_t rank = 0;
    for (const json::Value card : result["cards"]) {
      corpora.insert(card["corpus"].string_or(""));
      if (logged++ >= limits::logged_cards_max) break;
      cards.begin_object()
          .member("id", card["id"].string_or(""))
          .member("rank", ++rank)
          .raw_member("score", card["score"].source())
          .end_object();
    }
  }
  out.key("corpora").begin_array();
  for (const std::string& corpus : corpora) out.string(corpus);
  out.end_array()
      .member("profile", profile)
      .member("plan_hash", plan_hash)
      .member("watermark", std::max<std::int64_t>(watermark, 0));
  out.raw_member("cards", cards.end_array().text())
      .member("cache", hit ? "hit" : "miss")
      .member("duration_us", duration_us);
  return std::move(out.end_object()).text();
}

}  // namespace

namespace {

// A single invalid passage invalidates the cached answer.
bool still_stands(Call& call, std::string_view answer, std::optional<std::int64_t> as_of) {
  const auto parsed = json::parse(answer);
  if (!parsed) return false;
  std::vector<std::string> pointers;
  for (const json::Value card : parsed->root()["cards"]) pointers.push_back(card["id"].string_or(""));
  evidence::Sight sight = sight_of(call);
  sight.as_of = as_of;
  sight.known = &call.services.retrieval.documents().chunk_rows();
  evidence::Resolver resolver(*call.reader, call.services.files, std::move(sight));
  if (!resolver.read_ahead(pointers)) return false;
  return std::ranges::all_of(pointers, [&](const std::string& pointer) {
    const auto found = resolver.resolve(pointer, evidence::Depth::span);
    return found && found->ok();
  });
}

// The key of the shared cache includes every setting that may differ between two starts of the daemon.
std::string shared_key(Services& services, const std::string& key) {
  return key + "\n" + joined(services.retrieval.indexer().degraded(), "\n");
}

// Returns the cached answer to the same plan if all currently available lanes contributed to it and all its passages
// are still valid; otherwise nullptr.
std::shared_ptr<const std::string> known_answer(Call& call, const retrieval::QueryPlan& plan) {
  retrieval::Retriever& retriever = call.services.retrieval.retriever();
  const std::vector<std::string> keys = retriever.keys(plan, call.deadline);
  if (auto known = retriever.cache().find_first(keys)) return known;
  retrieval::SharedCache* const shared = call.services.retrieval.shared_cache();
  if (shared == nullptr) return nullptr;
  for (const std::string& key : keys) {
    const std::string name = shared_key(call.services, key);
    auto text = shared->find(name);
    if (!text) continue;
    if (!still_stands(call, *text, plan.as_of)) {
      shared->forget(name);
      continue;
    }
    retriever.cache().put(key, *text, text->size());
    return std::make_shared<const std::string>(*std::move(text));
  }
  return nullptr;
}

// Writes the degraded components, which slow answers down but do not change them.
void write_degraded(json::Writer& out, Services& services) {
  const retrieval::SharedCache* const shared = services.retrieval.shared_cache();
  const std::string problem = shared ? shared->problem() : std::string();
  if (!problem.empty()) out.member("degraded", std::vector<std::string>{"shared cache: " + problem});
}

// A remembered answer records that a lane was behind, but not by how much.
retrieval::Answer as_remembered(retrieval::Answer answer) {
  for (const std::string& lane : answer.waiting) {
    std::erase_if(answer.degraded, [&](const std::string& words) { return words.starts_with(lane + ": "); });
    answer.degraded.push_back(lane + ": behind");
  }
  return answer;
}

void remember_answer(Services& services, const retrieval::QueryPlan& plan, const std::string& query,
                     const retrieval::Answer& answer) {
  const std::string key = retrieval::Retriever::key_of(plan, answer),
                    text = retrieval::result_json(query, as_remembered(answer));
  services.retrieval.retriever().cache().put(key, text, text.size());
  if (retrieval::SharedCache* const shared = services.retrieval.shared_cache())
    shared->put(shared_key(services, key), text);
}

}  // namespace

Result<retrieval::Question> common_question(Call& call) {
  ASSIGN_OR_RETURN(retrieval::Question question, retrieval::question_of(call.params));
  ASSIGN_OR_RETURN(question.as_of, asof_seq(call, *call.reader));
  return question;
}

Result<retrieval::Scope> scope_of(Call& call) {
  retrieval::Scope scope;
  scope.principal = call.caller.actor;
  scope.sees_all = call.caller.admin;
  scope.sees_run = [&call](const std::string& run_id) -> Result<bool> {
    const auto run = find_run(call, run_id);
    if (run) return true;
    if (run.error().code == Errc::conflict) return true;  // in a closed log
    if (run.error().code == Errc::not_found || run.error().code == Errc::invalid_argument) return false;
    return run.error();
  };
  ASSIGN_OR_RETURN(const auto owners, call.services.retrieval.documents().owners(*call.reader));
  for (const auto& [corpus, owner] : *owners) {
    if (may_see_corpus(call.caller, owner)) scope.corpora.push_back(corpus);
  }
  return scope;
}

Result<Answer> evidence_retrieve(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const Monotonic began = call.services.clock.monotonic();
  ASSIGN_OR_RETURN(const Use use, use_of(call));
  retrieval::Retriever& retriever = call.services.retrieval.retriever();
  RETURN_IF_ERROR(wait_for_min_seq(call));
  ASSIGN_OR_RETURN(const retrieval::Question common, common_question(call));
  ASSIGN_OR_RETURN(const retrieval::Scope scope, scope_of(call));
  std::vector<retrieval::Question> questions;
  std::vector<std::string> results;
  std::vector<std::string> unverified;
  bool all_hit = true;
  for (const json::Value item : call.params["queries"]) {
    retrieval::Question& question = questions.emplace_back(common);
    question.text = item["query"].string_or("");
    if (const auto corpus = item["corpus"].as_string()) question.corpora = {*corpus};
    if (const auto cursor = item["cursor"].as_string()) question.cursor = *cursor;
    ASSIGN_OR_RETURN(const retrieval::Retriever::Plan plan,
                     retriever.plan(question, scope, *call.reader, call.services.tail, call.deadline));
    question.expand = plan.question.expand;
    question.rerank = plan.question.rerank;
    if (const auto known = known_answer(call, plan)) {
      results.push_back(*known);
      continue;
    }
    all_hit = false;
    ASSIGN_OR_RETURN(const retrieval::Answer answer, retriever.answer(plan, *call.reader, call.deadline));
    results.push_back(retrieval::result_json(question.text, answer));
    unverified.insert(unverified.end(), answer.unverified.begin(), answer.unverified.end());
    if (!answer.passing) remember_answer(call.services, plan, question.text, answer);
  }
  const std::string body =
      answered_body(call.services, questions, results, all_hit, call.services.clock.micros_since(began));
  json::Writer out;
  out.begin_object().key("results").begin_array();
  for (const std::string& result : results) out.raw(result);
  out.end_array().member("cache", all_hit ? "hit" : "miss");
  write_degraded(out, call.services);
  // A run may depend on a passage that could not be verified.
  evidence::Outcome outcome;
  if (!unverified.empty()) {
    ASSIGN_OR_RETURN(outcome, resolve_pointers(call, unverified, {.run = use.run, .depth = evidence::Depth::whole}));
  }
  return leave_trace(call, use, "retrieval.answered", body, Reply{std::move(out.end_object()).text(), {}}, outcome);
}

}  // namespace muniment::gateway::methods
