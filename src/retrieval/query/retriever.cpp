// Answers a plan page by page, with caches and verification.
#include "retrieval/query/retriever.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "retrieval/child/search/search_client.hpp"
#include "retrieval/query/log_source.hpp"
#include "retrieval/query/sample_answer.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::chrono::minutes waiting_is_asked_for{1};  // after a lane was last behind

// A tag that no document has is text: "docker tag:latest". The tags of other users' runs are not revealed.
Status settle_tags(QueryPlan& plan, store::Reader& reader) {
  const bool of_runs = std::ranges::binary_search(plan.corpora, store::run_corpus);
  if (plan.samples || plan.corpora.empty() || of_runs) return success();
  for (const std::string& tag : std::vector<std::string>(plan.markup.tags)) {
    ASSIGN_OR_RETURN(const bool known, reader.has_tag(plan.corpora, tag));
    if (!known) take_tag_as_text(plan.markup, tag);
  }
  return success();
}

// Reads from the log what the plan depends on. Errors: invalid_argument (an asof in the future); unavailable for a time
// whose events are not completely known yet.
Status settle_by_log(QueryPlan& plan, const Scope& scope, store::Reader& reader, const store::Tail& tail,
                     Deadline deadline) {
  RETURN_IF_ERROR(settle_tags(plan, reader));
  for (const std::string& run_id : plan.markup.runs) {
    if (!scope.sees_run) break;
    ASSIGN_OR_RETURN(const bool seen, scope.sees_run(run_id));
    plan.unknown_run = plan.unknown_run || !seen;
  }
  if (plan.as_of || !plan.markup.as_of) return success();
  const Clock clock;
  // A day that is not over includes what is recorded so far; a past day requires all of its events.
  const Time decided = *plan.markup.as_of < clock.now() ? *plan.markup.as_of : *plan.markup.as_of_begin;
  ASSIGN_OR_RETURN(const bool begun, reader.has_passed(decided, clock, tail, deadline));
  if (!begun)
    return Error(Errc::invalid_argument, "filter asof: " + format_time(*plan.markup.as_of_begin) +
                                             " is in the future. Omit it to search the current state");
  ASSIGN_OR_RETURN(plan.as_of, reader.seq_as_of(*plan.markup.as_of));
  return success();
}

}  // namespace

Result<Retriever::Plan> Retriever::plan(const Question& question, const Scope& scope, store::Reader& reader,
                                        const store::Tail& tail, Deadline deadline) const {
  RETURN_IF_ERROR(documents_.refused());
  ASSIGN_OR_RETURN(Plan plan, begin_plan(question, scope, hooks_));
  RETURN_IF_ERROR(settle_by_log(plan, scope, reader, tail, deadline));
  end_plan(plan, scope, hooks_);
  plan.watermark = indexer_.next_change();
  if (!question.cursor.empty()) {
    ASSIGN_OR_RETURN(const Cursor cursor, parse_cursor(question.cursor));
    if (cursor.hash != plan.hash.substr(0, hash_digits)) {
      return Error(Errc::invalid_argument,
                   "cursor: it belongs to another query. Send it with the same query, filters and topK.");
    }
    plan.from = cursor.from;
    plan.ranking = cursor.ranking;
    // All pages of one answer use the same state of the index.
    if (cursor.watermark != plan.watermark && !plan.as_of) plan.as_of = cursor.watermark - 1;
  }
  // The answer repeats the question as it was sent, and two questions may have one plan.
  plan.key = fmt::format("{} {} {} {} {} {} {} {} {}", plan.hash, plan.from, plan.ranking, plan.as_of.value_or(-2),
                         plan.watermark, indexer_.engine_starts(), documents_.last_change(), question.explain ? 1 : 0,
                         to_hex(sha256(question.text)));
  return plan;
}

// Computes one answer: ranking, then cards.
struct Retriever::Work {
  const Retriever& retriever;
  const Plan& plan;
  store::Reader& reader;
  const Deadline deadline;
  Answer answer;
  LogSource source{plan,   retriever.search_, retriever.documents_,         retriever.files_,
                   reader, deadline,          retriever.indexer_.next_seq()};
  Ranking ranking{};

  // A later page uses the state of the first one.
  std::int64_t pages_watermark() const {
    return plan.ranking.empty() || !plan.as_of ? plan.watermark : *plan.as_of + 1;
  }

  // Keeps the ranking for the next pages: lanes may join and documents may be added before they are requested.
  std::string keep_ranking() const {
    if (!plan.ranking.empty()) return plan.ranking;
    const std::string name = to_hex(sha256(plan.key + " " + joined(ranking.identities, " "))).substr(0, hash_digits);
    std::size_t bytes = 0;
    for (const Ranked& ranked : ranking.ranked) {
      bytes +=
          sizeof ranked + ranked.candidate.lanes.size() * sizeof(ranked.candidate.lanes[0]) + ranked.snippet.size();
    }
    retriever.rankings_.put(name, {ranking.ranked, ranking.identities}, bytes);
    return name;
  }

  // Takes the ranking that an earlier page used; otherwise computes it.
  Status take_ranking() {
    if (!plan.ranking.empty()) {
      if (const auto kept = retriever.rankings_.find(plan.ranking)) {
        ranking.ranked = kept->ranked;
        ranking.identities = answer.lanes = kept->identities;
        return success();
      }
      answer.passing = true;
      answer.degraded.push_back("cursor: the ranking was no longer stored and was computed again");
    }
    ASSIGN_OR_RETURN(ranking, rank(plan, source, retriever.hooks_));
    answer.degraded.insert(answer.degraded.end(), ranking.degraded.begin(), ranking.degraded.end());
    answer.passing = answer.passing || ranking.passing;
    answer.waiting = ranking.waiting;
    answer.lanes = ranking.identities;
    if (!answer.waiting.empty()) retriever.waited_at_ = std::chrono::steady_clock::now();
    return success();
  }

  // Determines why nothing was found, without revealing what the principal may not see.
  Status explain_nothing() {
    const std::int64_t behind = retriever.documents_.last_change() + 1 - retriever.indexer_.next_seq();
    if (behind <= 0 || !answer.unverified.empty() || plan.corpora.empty() || plan.unknown_run)
      return add_reason(answer, plan, source, [this] { return anything_indexed(); });
    answer.reason = "index_behind";
    answer.passing = true;
    answer.count = behind;
    return success();
  }

  // Also true if the answer would reveal whether the runs of others are indexed.
  Result<bool> anything_indexed() const {
    std::vector<std::string> sources;
    for (const std::string& run_id : plan.markup.runs) sources.push_back("run://" + run_id);
    const bool of_runs = std::ranges::binary_search(plan.corpora, store::run_corpus);
    if (of_runs && sources.empty() && !plan.owner.empty()) return true;
    return reader.has_documents(plan.corpora, sources);
  }

  void answer_from_samples() {
    std::vector<Card> cards = sample_cards(plan.markup.text, plan.markup.phrases, filter_of(plan));
    answer.lanes = {std::string(sample_lane)};
    const std::size_t end = std::min(cards.size(), plan.from + plan.question.top_k);
    for (std::size_t rank = plan.from; rank < end; ++rank) answer.cards.push_back(std::move(cards[rank]));
    if (end < cards.size()) answer.cursor = text_of({end, plan.watermark, plan.hash, {}});
    if (!cards.empty()) return;
    answer.count = static_cast<std::int64_t>(sample_cards(plan.markup.text, plan.markup.phrases, {}).size());
    answer.reason = answer.count > 0 ? "filtered_out" : "no_match";
  }

  Status run() {
    answer.corpora = plan.corpora;
    answer.filters = plan.markup.filters;
    answer.profile = plan.profile->name;
    answer.plan_hash = plan.hash;
    answer.watermark = plan.watermark;
    answer.indexed = retriever.indexer_.passages();
    answer.as_of = plan.as_of;
    if (plan.samples) {
      answer_from_samples();
      return success();
    }
    if (const std::int64_t differing = retriever.indexer_.differing_passages(); differing > 0) {
      answer.passing = true;
      answer.degraded.push_back(fmt::format(
          "{} passages could not be verified and are not in the search indexes as the log recorded them", differing));
    }
    if (!plan.corpora.empty()) {
      RETURN_IF_ERROR(take_ranking());
      ASSIGN_OR_RETURN(const auto next, add_cards(answer, plan, ranking.ranked, source));
      if (next) answer.cursor = text_of({*next, pages_watermark(), plan.hash, keep_ranking()});
    }
    if (answer.cards.empty() && answer.expired > 0) {
      answer.reason = "expired";
      answer.count = answer.expired;
    } else if (answer.cards.empty() && plan.from == 0) {
      RETURN_IF_ERROR(explain_nothing());
    }
    if (plan.question.explain) answer.explain = explain_json(plan, ranking);
    return success();
  }
};

namespace {

std::string key_without(const std::string& key, const std::vector<std::string>& lanes) {
  return lanes.empty() ? key : key + " without " + joined(lanes, ",");
}

}  // namespace

std::string Retriever::key_of(const Plan& plan, const Answer& answer) { return key_without(plan.key, answer.waiting); }

// Only the engine knows which lanes are behind. It is asked only if one was behind recently, because that takes a round
// trip.
std::vector<std::string> Retriever::keys(const Plan& plan, Deadline deadline) const {
  const Monotonic now = std::chrono::steady_clock::now();
  if (waited_at_.load() + waiting_is_asked_for < now || plan.samples || plan.corpora.empty()) return {plan.key};
  LaneQuery query = lane_query(plan, filter_of(plan));
  query.only_lanes = true;
  const auto lanes = search_.search(query, deadline);
  if (!lanes || lanes->waiting.empty()) return {plan.key};
  waited_at_ = now;
  return {plan.key, key_without(plan.key, lanes->waiting)};
}

Result<Answer> Retriever::answer(const Plan& plan, store::Reader& reader, Deadline deadline) const {
  Work work{*this, plan, reader, deadline, {}};
  RETURN_IF_ERROR(work.run());
  return std::move(work.answer);
}

Status Retriever::wait_for(std::int64_t seq, Deadline deadline) const {
  RETURN_IF_ERROR(documents_.refused());
  if (!documents_.wait_for(seq + 1, deadline)) {
    return Error(Errc::deadline_exceeded,
                 fmt::format("min_seq: the document tables are behind, at {} of {}.", documents_.next_seq(), seq));
  }
  return indexer_.wait_for(seq + 1, deadline);
}

}  // namespace muniment::retrieval
