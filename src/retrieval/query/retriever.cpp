// Answers a plan page by page, with caches and verification.
#include "retrieval/query/retriever.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "retrieval/answer/statement.hpp"
#include "retrieval/plan/fusion.hpp"
#include "retrieval/query/next_passage.hpp"
#include "retrieval/query/passages.hpp"
#include "retrieval/query/sample_answer.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::chrono::minutes waiting_is_asked_for{1};  // after a lane was last behind
constexpr std::size_t spare_rows = 6;  // rows read in addition to those that a page lacks, in case some are not hits

}  // namespace

Result<Retriever::Plan> Retriever::plan(const Question& question, const Scope& scope, store::Reader& reader,
                                        const store::Tail& tail, Deadline deadline) const {
  RETURN_IF_ERROR(documents_.refused());
  ASSIGN_OR_RETURN(Plan plan, understand(question, scope, hooks_, reader, tail, deadline));
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
  const std::int64_t indexed_to = retriever.indexer_.next_seq();  // before the ranking
  Ranking ranking{};
  std::vector<store::ChunkRows::Row> shown{};  // rows of the answer's cards

  Result<LaneAnswer> ask(const Filter& filter) const { return ask_lanes(plan, retriever.search_, filter, deadline); }

  // Reads the ranking from the page's first rank until the page is full; skips what cannot be verified.
  Status fill_page() {
    const auto& ranked = ranking.ranked;
    const Passages passages(plan, reader, retriever.documents_.chunk_rows(), retriever.files_);
    const std::size_t top_k = plan.question.top_k;
    const std::vector<std::string> words = words_to_show(plan.markup);
    std::set<std::pair<std::string, std::string>> documents;  // already shown, on this page or an earlier one
    std::size_t unverified = 0, mended = 0;
    // A document that was withdrawn after the indexes were read is a hit that the tables do not have.
    const bool behind = retriever.documents_.last_change() >= indexed_to;
    // With grouping, earlier pages decide which documents are new, so the ranking is read from the first rank.
    const std::size_t first = plan.question.by_document ? 0 : plan.from;
    std::size_t place = first;
    while (place < ranked.size() && answer.cards.size() < top_k) {
      // First reads only what fills the page if every row is a hit, which is usual.
      const std::size_t spare = place == first && !plan.question.by_document ? 0 : spare_rows;
      const std::size_t end = std::min(ranked.size(), place + top_k - answer.cards.size() + spare);
      std::vector<ChunkId> chunks;
      for (std::size_t i = place; i < end; ++i) chunks.push_back(ranked[i].candidate.chunk);
      ASSIGN_OR_RETURN(const auto rows, passages.find(chunks));
      for (; place < end && answer.cards.size() < top_k; ++place) {
        const auto found = rows.find(ranked[place].candidate.chunk);
        if (found == rows.end()) {
          unverified += !behind;
          continue;
        }
        const store::ChunkInDocument& item = *found->second;
        mended += item.document.mended;
        if (item.document.expires_at) answer.passing = true;  // the answer changes at that time
        if (has_expired(item.document, plan)) {
          ++answer.expired;
          continue;
        }
        const bool seen =
            plan.question.by_document && !documents.emplace(item.document.corpus, item.document.document).second;
        if (seen || place < plan.from) continue;
        ASSIGN_OR_RETURN(auto text, passages.text_of(item));
        if (!text) {
          ++unverified;
          answer.unverified.push_back(pointer_of(item, true));
          continue;
        }
        answer.cards.push_back(make_card(item, *std::move(text), ranked[place].candidate, words));
        shown.push_back(found->second);
        if (!ranked[place].snippet.empty()) answer.cards.back().summary = ranked[place].snippet;
      }
    }
    if (unverified > 0) {
      answer.passing = true;
      answer.degraded.push_back(fmt::format("{} hits were omitted because they could not be verified", unverified));
    }
    if (mended > 0)
      answer.degraded.push_back(fmt::format("{} hits have rows that differ from the log: the log's are used", mended));
    if (place < ranked.size()) answer.cursor = text_of({place, pages_watermark(), plan.hash, keep_ranking()});
    return add_replaced();
  }

  // Adds the times of the revisions that the facts replaced.
  Status add_replaced() {
    std::vector<store::Citation> citations;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const store::DocumentRow& row = shown[i]->document;
      if (!answer.cards[i].whole || row.previous.empty()) continue;
      citations.push_back({row.corpus, row.document, row.previous, -1});
      places.push_back(i);
    }
    if (citations.empty()) return success();
    ASSIGN_OR_RETURN(const auto replaced, retriever.documents_.chunk_rows().cited(reader, citations));
    for (std::size_t i = 0; i < replaced.size(); ++i) {
      if (replaced[i].document && replaced[i].document->hash != shown[places[i]]->document.hash)
        answer.cards[places[i]].replaces = format_time(replaced[i].document->document_time);
    }
    return success();
  }

  // Puts newer facts before those that they may replace, and marks these.
  void put_newer_first() {
    std::vector<DatedStatement> statements;
    std::map<std::string, std::set<std::string>> asked;  // the question's words, by language
    std::set<std::string> names;
    for (const Card& card : answer.cards) {
      DatedStatement& next = statements.emplace_back();
      if (!card.whole || !card.current) continue;
      const auto [words, is_new] = asked.try_emplace(card.language);
      if (is_new) {
        const Statement question = statement_of(plan.markup.text, card.language);
        words->second = question.words;
        names.insert(question.names.begin(), question.names.end());
      }
      next = {statement_of(card.text, card.language), words->second, card.corpus, card.known_since,
              card.trust == "trusted"};
    }
    std::vector<Card> cards;
    const std::vector<PlacedStatement> placed = newer_first(statements, std::move(names));
    std::vector<std::string> ids;
    for (const Card& card : answer.cards) ids.push_back(card.id);
    for (const PlacedStatement& one : placed) {
      cards.push_back(std::move(answer.cards[one.index]));
      if (one.newer) cards.back().newer = ids[*one.newer];
    }
    answer.cards = std::move(cards);
  }

  // Puts the passage after a question behind it. That passage need not be a hit, but passes the query's filter. Phrases
  // are required of every passage, so that a query with phrases gets hits only.
  Status add_after_questions() {
    const Passages passages(plan, reader, retriever.documents_.chunk_rows(), retriever.files_);
    std::vector<ChunkId> next;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (ends_with_question(answer.cards[i].text)) next.push_back(static_cast<ChunkId>(shown[i]->chunk.chunk_id + 1));
    }
    if (next.empty() || !plan.markup.phrases.empty()) return success();
    ASSIGN_OR_RETURN(const auto rows, passages.find(next));
    const Filter filter = filter_of(plan);
    std::set<std::int64_t> taken;
    std::vector<Card> cards;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      Card& hit = answer.cards[i];
      const bool asks = ends_with_question(hit.text);
      const Candidate candidate{static_cast<ChunkId>(shown[i]->chunk.chunk_id + 1), hit.score, {}, 0, hit.confidence};
      if (taken.insert(shown[i]->chunk.chunk_id).second) cards.push_back(std::move(hit));
      const auto found = asks ? rows.find(candidate.chunk) : rows.end();
      if (found == rows.end() || !continues(*shown[i], *found->second)) continue;
      const store::ChunkInDocument& item = *found->second;
      if (!passes(filter, facts_of(item.document, plan.owner)) || taken.contains(item.chunk.chunk_id)) continue;
      ASSIGN_OR_RETURN(auto text, passages.text_of(item));
      if (!text) {
        answer.unverified.push_back(pointer_of(item, true));
        continue;
      }
      taken.insert(item.chunk.chunk_id);
      cards.push_back(make_card(item, *std::move(text), candidate, {}));
      cards.back().after_question = true;
    }
    answer.cards = std::move(cards);
    return success();
  }

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
    ASSIGN_OR_RETURN(ranking, rank(plan, {retriever.search_, retriever.hooks_, retriever.documents_, retriever.files_},
                                   reader, deadline));
    answer.degraded.insert(answer.degraded.end(), ranking.degraded.begin(), ranking.degraded.end());
    answer.passing = answer.passing || ranking.passing;
    answer.waiting = ranking.waiting;
    answer.lanes = ranking.identities;
    if (!answer.waiting.empty()) retriever.waited_at_ = std::chrono::steady_clock::now();
    return success();
  }

  // Returns their number; 0 if there may be more than a lane searches for.
  static std::int64_t known_count(const LaneAnswer& found) {
    return found.candidates.size() < limits::ranked_cards_max ? std::ssize(found.candidates) : 0;
  }

  // Determines why nothing was found, without revealing what the principal may not see.
  Status explain_nothing() {
    if (!answer.unverified.empty()) {
      answer.reason = "unverified";
      answer.count = std::ssize(answer.unverified);
      return success();
    }
    const std::int64_t behind = retriever.documents_.last_change() + 1 - retriever.indexer_.next_seq();
    if (plan.corpora.empty() || plan.unknown_run) {
      answer.reason = plan.unknown_run ? "unknown_run" : plan.unknown_corpus ? "unknown_corpus" : "nothing_indexed";
      return success();
    }
    if (behind > 0) {
      answer.reason = "index_behind";
      answer.passing = true;
      answer.count = behind;
      return success();
    }
    ASSIGN_OR_RETURN(const LaneAnswer anything, ask(scope_filter(plan)));
    Filter quarantined = filter_of(plan);
    std::erase(quarantined.none_of, "trust:quarantined");
    require_any(quarantined, "trust", {"quarantined"});
    ASSIGN_OR_RETURN(const LaneAnswer held, ask(quarantined));
    answer.count = known_count(anything);
    if (plan.unknown_corpus) {
      answer.reason = "unknown_corpus";
    } else if (!held.candidates.empty()) {
      answer.reason = "all_quarantined";
      answer.count = known_count(held);
    } else if (!anything.candidates.empty()) {
      answer.reason = "filtered_out";
    } else {
      ASSIGN_OR_RETURN(const bool indexed, anything_indexed());
      answer.reason = indexed ? "no_match" : "nothing_indexed";
    }
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

  void write_explain() {
    json::Writer out;
    out.begin_object().member("text", plan.markup.text).member("profile", plan.profile->name).key("filter");
    write_filter(out, filter_of(plan));
    write_notes(out, ranking.notes);
    out.key("lists").begin_array();
    for (const LaneList& list : ranking.lists) {
      out.begin_object()
          .member("lane", list.lane)
          .member("query", list.query)
          .member("original", list.original ? 1 : 0);
      out.key("weight").number(list.weight);
      if (plan.profile->standing_hits > 0) out.key("stands_out").number(standing_out(*plan.profile, list.hits));
      out.member("duration_us", list.duration_us).key("hits").begin_array();
      for (std::size_t i = 0; i < list.hits.size() && i < limits::explained_hits_max; ++i) {
        out.begin_object()
            .member("chunk", static_cast<std::int64_t>(list.hits[i].chunk))
            .key("score")
            .number(list.hits[i].score)
            .end_object();
      }
      out.end_array().member("found", list.hits.size()).end_object();
    }
    out.end_array();
    answer.explain = std::move(out.end_object()).text();
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
      RETURN_IF_ERROR(fill_page());
      if (plan.question.after_questions) RETURN_IF_ERROR(add_after_questions());
      put_newer_first();
    }
    if (answer.cards.empty() && answer.expired > 0) {
      answer.reason = "expired";
      answer.count = answer.expired;
    } else if (answer.cards.empty() && plan.from == 0) {
      RETURN_IF_ERROR(explain_nothing());
    }
    if (plan.question.explain) write_explain();
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
  const auto waiting = waiting_lanes(plan, search_, deadline);
  if (!waiting || waiting->empty()) return {plan.key};
  waited_at_ = now;
  return {plan.key, key_without(plan.key, *waiting)};
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
