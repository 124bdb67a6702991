// Ranks candidates: probe, expansion, reranking and feedback.
#include "retrieval/query/ranking.hpp"
#include "evidence/pointer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "retrieval/plan/blend.hpp"
#include "retrieval/query/card.hpp"
#include "retrieval/rerank/local_reranker.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {
namespace {

constexpr double feedback_weight = 0.1;                       // for a mean of 1, relative to scores of 0…1
constexpr std::size_t ranked_max = limits::ranked_cards_max;  // regardless of the page size: equal for all pages
constexpr std::size_t probe_hits = 2;
// A question may quote something; only a query of nothing but phrases insists on them.
constexpr const char* phrases_as_words =
    "phrases: no passage contains them and passes the filters; they were searched as words";
constexpr const char* rerank_lane = "rerank";  // among a card's scores

class Stopwatch {
 public:
  std::int64_t micros() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// A helper may use half of the remaining time, so that a late helper does not make the query late.
Deadline helpers_deadline(Deadline deadline) {
  const Monotonic now = std::chrono::steady_clock::now();
  return deadline <= now ? deadline : now + (deadline - now) / 2;
}

// The query without its filters.
std::string words_to_score(const Markup& markup) {
  if (markup.phrases.empty()) return markup.text;
  return markup.text.empty() ? joined(markup.phrases, " ") : markup.text + " " + joined(markup.phrases, " ");
}

std::optional<std::string> date_of(const std::optional<std::int64_t>& micros) {
  if (!micros) return std::nullopt;
  return format_time(Time{*micros});
}

// Returns a hook's snippet if it is part of the passage: a card quotes only ingested text.
std::string quoted_from(std::string_view passage, const std::string& snippet) {
  const std::string whole = summary_of(passage, passage.size()), part = summary_of(snippet, snippet.size());
  return whole.find(part) == std::string::npos ? std::string() : summary_of(part, limits::summary_bytes_max);
}

// Computes one ranking.
class Ranker {
 public:
  Ranker(const QueryPlan& plan, PassageSource& source, const Hooks& hooks)
      : plan_(plan), source_(source), hooks_(hooks), filter_(filter_of(plan)) {}

  Result<Ranking> run();

 private:
  struct Best {
    std::vector<std::size_t> places;    // their indices in candidates_
    std::vector<std::string> passages;  // their text, in the form that an index uses
    std::vector<store::ChunkInDocument> rows;
  };
  Result<bool> probe_is_clear();
  Status expand();
  void ask_expansion_hook();
  Result<Best> best_passages() const;
  Status rerank();
  void rerank_here(const Best& best);
  void ask_reranker(const Best& best);
  void note_score(std::size_t place, double score);
  void take_scores(const Best& best, const RerankAnswer& answer);
  Status blend_all();
  void degrade(std::string why);

  const QueryPlan& plan_;
  PassageSource& source_;
  const Hooks& hooks_;
  const Filter filter_;
  std::vector<Candidate> candidates_;
  std::vector<Reranked> scored_;       // parallel to candidates_
  std::vector<std::string> snippets_;  // parallel to candidates_
  Ranking ranking_;
};

Result<Ranking> Ranker::run() {
  RETURN_IF_ERROR(expand());
  LaneQuery query = lane_query(plan_, filter_);
  query.lexical_expansions = ranking_.notes.expansions.lexical;
  query.vector_expansions = ranking_.notes.expansions.vector;
  ASSIGN_OR_RETURN(LaneAnswer lanes, source_.search(query));
  if (lanes.candidates.empty() && !query.phrases.empty() && !query.text.empty()) {
    query.text = words_to_score(plan_.markup);
    query.phrases.clear();
    ASSIGN_OR_RETURN(lanes, source_.search(query));
    if (!lanes.candidates.empty()) ranking_.degraded.emplace_back(phrases_as_words);
  }
  candidates_ = std::move(lanes.candidates);
  ranking_.lists = std::move(lanes.lists);
  ranking_.identities = std::move(lanes.identities);
  ranking_.degraded.insert(ranking_.degraded.end(), lanes.degraded.begin(), lanes.degraded.end());
  ranking_.passing = ranking_.passing || lanes.passing;
  ranking_.waiting = std::move(lanes.waiting);
  for (const Candidate& candidate : candidates_) scored_.push_back({candidate.chunk, candidate.score, std::nullopt, 0});
  snippets_.resize(candidates_.size());
  RETURN_IF_ERROR(rerank());
  RETURN_IF_ERROR(blend_all());
  return std::move(ranking_);
}

// A failed helper may succeed the next time, so the answer is not cached.
void Ranker::degrade(std::string why) {
  ranking_.passing = true;
  ranking_.degraded.push_back(std::move(why));
}

// Searches for two lexical hits; if the first one leads clearly, expansions could only weaken it.
Result<bool> Ranker::probe_is_clear() {
  if (plan_.question.mode == Mode::vector) return false;
  const Stopwatch watch;
  RankingNotes& notes = ranking_.notes;
  LaneQuery query = lane_query(plan_, filter_);
  query.mode = Mode::lexical;
  query.k = probe_hits;
  query.explain = false;
  ASSIGN_OR_RETURN(const LaneAnswer found, source_.search(query));
  for (const Candidate& candidate : found.candidates) {
    for (const auto& [lane, score] : candidate.lanes) notes.probe.push_back(score);
  }
  notes.probed = true;
  notes.strong = probe_is_strong(*plan_.profile, notes.probe);
  notes.probe_us = watch.micros();
  return notes.strong;
}

Status Ranker::expand() {
  if (plan_.question.expand == Expand::none || plan_.markup.text.empty()) return success();
  ASSIGN_OR_RETURN(const bool clear, probe_is_clear());
  if (clear) return success();
  const Stopwatch watch;
  RankingNotes& notes = ranking_.notes;
  if (plan_.question.expand == Expand::hook) ask_expansion_hook();
  if (notes.expanded_by.empty()) {
    notes.expansions = heuristic_expansions(plan_.markup.text);
    notes.expanded_by = name_of(Expand::heuristic);
  }
  notes.expand_us = watch.micros();
  return success();
}

void Ranker::ask_expansion_hook() {
  ExpansionRequest request;
  request.query = plan_.markup.text;
  request.max_expansions = hooks_.expansions_max();
  if (plan_.corpora.size() == 1)
    request.scope = (plan_.of_capsule ? std::string(evidence::document_scheme) : "ev://") + plan_.corpora.front() + "/";
  request.after = date_of(filter_.after_us);
  request.before = date_of(filter_.before_us);
  request.as_of = plan_.as_of;
  auto answer = hooks_.expand(request, helpers_deadline(source_.deadline()));
  if (!answer) return degrade(std::move(answer.error().message));
  for (const std::string& warning : answer->warnings) degrade("expansion hook: " + warning);
  ranking_.notes.expansions = {std::move(answer->lexical), std::move(answer->vector)};
  ranking_.notes.expanded_by = name_of(Expand::hook);
}

// Returns the best candidates that can be verified: unverified text is not sent to helpers.
Result<Ranker::Best> Ranker::best_passages() const {
  const std::size_t count = std::min(candidates_.size(), limits::rerank_candidates_default);
  std::vector<ChunkId> chunks;
  for (std::size_t i = 0; i < count; ++i) chunks.push_back(candidates_[i].chunk);
  ASSIGN_OR_RETURN(const auto rows, source_.find(chunks));
  Best best;
  for (std::size_t i = 0; i < count; ++i) {
    const auto found = rows.find(chunks[i]);
    if (found == rows.end() || has_expired(found->second->document, plan_)) continue;
    const store::ChunkInDocument& item = *found->second;
    ASSIGN_OR_RETURN(const auto text, source_.text_of(item));
    if (!text) continue;
    best.passages.push_back(index_text_of(format_named(item.document.format), *text));
    best.rows.push_back(item);
    best.places.push_back(i);
  }
  return best;
}

Status Ranker::rerank() {
  if (plan_.question.rerank == Rerank::none || candidates_.empty()) return success();
  const Stopwatch watch;
  ASSIGN_OR_RETURN(const Best best, best_passages());
  if (best.places.empty()) return success();
  if (plan_.question.rerank == Rerank::local)
    rerank_here(best);
  else
    ask_reranker(best);
  ranking_.notes.rerank_us = watch.micros();
  return success();
}

// The local reranker's scores include the fused ones: they replace these without blending. The remaining candidates
// follow.
void Ranker::rerank_here(const Best& best) {
  std::vector<std::string> texts;
  std::vector<LocalCandidate> sent;
  for (std::size_t i = 0; i < best.places.size(); ++i) {
    const store::ChunkInDocument& item = best.rows[i];
    texts.push_back(item.document.title + "\n" + (item.chunk.heading == item.document.title ? "" : item.chunk.heading) +
                    "\n" + best.passages[i]);
  }
  for (std::size_t i = 0; i < best.places.size(); ++i) {
    sent.push_back(
        {texts[i], best.rows[i].document.language, std::clamp(candidates_[best.places[i]].confidence, 0.0, 1.0)});
  }
  const std::vector<double> scores = rerank_locally(words_to_score(plan_.markup), sent);
  const double least = *std::ranges::min_element(scores);
  for (std::size_t i = 0; i < candidates_.size(); ++i) scored_[i].fused = std::min(least, candidates_[i].confidence);
  for (std::size_t i = 0; i < best.places.size(); ++i) {
    scored_[best.places[i]].fused = scores[i];
    note_score(best.places[i], scores[i]);
  }
  ranking_.notes.reranked_by = name_of(Rerank::local);
}

void Ranker::ask_reranker(const Best& best) {
  const std::string words = words_to_score(plan_.markup);
  const std::vector<std::string> shown = words_of(words);
  std::vector<RerankCandidate> sent;
  for (std::size_t i = 0; i < best.places.size(); ++i) {
    const store::DocumentRow& document = best.rows[i].document;
    sent.push_back(
        {std::to_string(candidates_[best.places[i]].chunk),
         plan_.of_capsule ? evidence::document_uri(document.corpus, document.document) : pointer_of(best.rows[i]),
         snippet_of(best.passages[i], shown, limits::rerank_snippet_bytes_max)});
  }
  const bool by_hook = plan_.question.rerank == Rerank::hook;
  const auto answer =
      by_hook ? hooks_.rerank(words, sent, helpers_deadline(source_.deadline())) : hooks_.ask_server(words, sent);
  if (!answer) return degrade(answer.error().message);
  ranking_.notes.reranked_by = name_of(plan_.question.rerank);
  take_scores(best, *answer);
}

void Ranker::note_score(std::size_t place, double score) {
  candidates_[place].lanes.emplace_back(rerank_lane, score);
  ranking_.notes.reranked.push_back({candidates_[place].chunk, place + 1, score});
}

void Ranker::take_scores(const Best& best, const RerankAnswer& answer) {
  for (const std::string& warning : answer.warnings) degrade("rerank hook: " + warning);
  for (std::size_t i = 0; i < best.places.size(); ++i) {
    if (!answer.scores[i]) continue;
    const std::size_t place = best.places[i];
    scored_[place].rerank = answer.scores[i];
    note_score(place, *answer.scores[i]);
  }
  std::size_t foreign = 0;
  for (const auto& [i, snippet] : answer.snippets) {
    std::string& kept = snippets_[best.places[i]] = quoted_from(best.passages[i], snippet);
    if (kept.empty()) ++foreign;
  }
  if (foreign > 0) degrade("rerank hook: " + std::to_string(foreign) + " snippets are not part of their passages");
}

// Includes the feedback on the candidates, as of the plan's time.
Status Ranker::blend_all() {
  if (!candidates_.empty()) {
    std::vector<std::int64_t> ids;
    for (const Candidate& candidate : candidates_) ids.push_back(candidate.chunk);
    ASSIGN_OR_RETURN(const auto means, source_.feedback_means(ids));
    for (Reranked& scored : scored_) {
      const auto found = means.find(scored.chunk);
      if (found != means.end()) scored.feedback = found->second;
    }
  }
  const bool reranked = !ranking_.notes.reranked.empty();
  for (const Blended& blended : blend(*plan_.profile, scored_, feedback_weight)) {
    const std::size_t place = blended.from - 1;
    Ranked& next = ranking_.ranked.emplace_back(Ranked{std::move(candidates_[place]), std::move(snippets_[place])});
    next.candidate.score = blended.score;
    if (reranked) next.candidate.confidence = blended.score;  // also in 0…1, and in the order of the ranks
  }
  return success();
}

}  // namespace

Result<Ranking> rank(const QueryPlan& plan, PassageSource& source, const Hooks& hooks) {
  return Ranker(plan, source, hooks).run();
}

LaneQuery lane_query(const QueryPlan& plan, const Filter& filter) {
  LaneQuery query;
  query.text = plan.markup.text;
  query.phrases = plan.markup.phrases;
  query.corpora = plan.corpora;
  query.mode = plan.question.mode;
  query.filter = filter;
  query.k = ranked_max;
  query.shown = plan.question.top_k;
  query.profile = plan.profile->name;
  query.exact = plan.question.exact;
  query.explain = plan.question.explain;
  return query;
}

void write_notes(json::Writer& out, const RankingNotes& notes) {
  if (notes.probed) {
    out.key("probe").begin_object().key("scores").begin_array();
    for (const double score : notes.probe) out.number(score);
    out.end_array().member("strong", notes.strong).member("duration_us", notes.probe_us).end_object();
  }
  if (!notes.expanded_by.empty()) {
    out.key("expansions").begin_object().member("by", notes.expanded_by).member("lexical", notes.expansions.lexical);
    out.member("vector", notes.expansions.vector).member("duration_us", notes.expand_us).end_object();
  }
  if (notes.reranked_by.empty()) return;
  out.key("rerank")
      .begin_object()
      .member("by", notes.reranked_by)
      .member("duration_us", notes.rerank_us)
      .key("scores")
      .begin_array();
  for (const RankingNotes::Scored& scored : notes.reranked) {
    out.begin_object()
        .member("chunk", static_cast<std::int64_t>(scored.chunk))
        .member("from", scored.from)
        .key("score")
        .number(scored.score)
        .end_object();
  }
  out.end_array().end_object();
}

}  // namespace muniment::retrieval
