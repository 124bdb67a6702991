// Makes cards of a ranking, and answers and questions of JSON.
#include "retrieval/query/answer.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/json/json_lists.hpp"
#include "base/limits.hpp"
#include "retrieval/answer/statement.hpp"
#include "retrieval/plan/fusion.hpp"
#include "retrieval/query/next_passage.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t spare_rows = 6;  // rows read in addition to those that a page lacks, in case some are not hits

// Makes the cards of one page.
struct Page {
  Answer& answer;
  const QueryPlan& plan;
  const std::vector<Ranked>& ranked;
  PassageSource& source;
  std::vector<PassageSource::Row> shown{};  // rows of the answer's cards
  std::optional<std::size_t> next{};        // rank of the next page

  // Reads the ranking from the page's first rank until the page is full; skips what cannot be verified.
  Status fill_page() {
    const std::size_t top_k = plan.question.top_k;
    const std::vector<std::string> words = words_to_show(plan.markup);
    std::set<std::pair<std::string, std::string>> documents;  // already shown, on this page or an earlier one
    std::size_t unverified = 0, mended = 0;
    // With grouping, earlier pages decide which documents are new, so the ranking is read from the first rank.
    const std::size_t first = plan.question.by_document ? 0 : plan.from;
    std::size_t place = first;
    while (place < ranked.size() && answer.cards.size() < top_k) {
      // First reads only what fills the page if every row is a hit, which is usual.
      const std::size_t spare = place == first && !plan.question.by_document ? 0 : spare_rows;
      const std::size_t end = std::min(ranked.size(), place + top_k - answer.cards.size() + spare);
      std::vector<ChunkId> chunks;
      for (std::size_t i = place; i < end; ++i) chunks.push_back(ranked[i].candidate.chunk);
      ASSIGN_OR_RETURN(const auto rows, source.find(chunks));
      for (; place < end && answer.cards.size() < top_k; ++place) {
        const auto found = rows.find(ranked[place].candidate.chunk);
        if (found == rows.end()) {
          unverified += !source.is_behind();
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
        ASSIGN_OR_RETURN(auto text, source.text_of(item));
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
    if (place < ranked.size()) next = place;
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
    ASSIGN_OR_RETURN(const auto replaced, source.cited(citations));
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
      DatedStatement& dated = statements.emplace_back();
      if (!card.whole || !card.current) continue;
      const auto [words, is_new] = asked.try_emplace(card.language);
      if (is_new) {
        const Statement question = statement_of(plan.markup.text, card.language);
        words->second = question.words;
        names.insert(question.names.begin(), question.names.end());
      }
      dated = {statement_of(card.text, card.language), words->second, card.corpus, card.known_since,
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
    std::vector<ChunkId> following;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (ends_with_question(answer.cards[i].text))
        following.push_back(static_cast<ChunkId>(shown[i]->chunk.chunk_id + 1));
    }
    if (following.empty() || !plan.markup.phrases.empty()) return success();
    ASSIGN_OR_RETURN(const auto rows, source.find(following));
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
      ASSIGN_OR_RETURN(auto text, source.text_of(item));
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
};

Result<std::optional<Time>> date_of(const json::Value& filters, std::string_view name) {
  const auto text = filters[name].as_string();
  if (!text) return std::optional<Time>();
  const auto date = parse_date(*text);
  if (!date)
    return Error(Errc::invalid_argument,
                 fmt::format("filters.{}: \"{}\" is not a date. Write 2026-01-31 or an RFC 3339 time.", name,
                             text->substr(0, 60)));
  return std::optional(name == "after" ? date->end : date->begin);
}

Result<Wishes> wishes_of(const json::Value& filters) {
  Wishes wishes;
  wishes.types = strings_of(filters["types"]);
  wishes.tags = strings_of(filters["tags"]);
  wishes.sources = strings_of(filters["sources"]);
  wishes.trust = strings_of(filters["trust"]);
  wishes.documents = strings_of(filters["documents"]);
  ASSIGN_OR_RETURN(wishes.after, date_of(filters, "after"));
  ASSIGN_OR_RETURN(wishes.before, date_of(filters, "before"));
  return wishes;
}

Mode mode_of(std::string_view name) {
  if (name == "lexical") return Mode::lexical;
  return name == "vector" ? Mode::vector : Mode::hybrid;
}

// Returns their number; 0 if there may be more than a lane searches for.
std::int64_t known_count(const LaneAnswer& found) {
  return found.candidates.size() < limits::ranked_cards_max ? std::ssize(found.candidates) : 0;
}

}  // namespace

Result<std::optional<std::size_t>> add_cards(Answer& answer, const QueryPlan& plan, const std::vector<Ranked>& ranked,
                                             PassageSource& source) {
  Page page{answer, plan, ranked, source};
  RETURN_IF_ERROR(page.fill_page());
  if (plan.question.after_questions) RETURN_IF_ERROR(page.add_after_questions());
  page.put_newer_first();
  return page.next;
}

Status add_reason(Answer& answer, const QueryPlan& plan, PassageSource& source,
                  const std::function<Result<bool>()>& has_documents) {
  if (!answer.unverified.empty()) {
    answer.reason = "unverified";
    answer.count = std::ssize(answer.unverified);
    return success();
  }
  if (plan.corpora.empty() || plan.unknown_run) {
    answer.reason = plan.unknown_run ? "unknown_run" : plan.unknown_corpus ? "unknown_corpus" : "nothing_indexed";
    return success();
  }
  ASSIGN_OR_RETURN(const LaneAnswer anything, source.search(lane_query(plan, scope_filter(plan))));
  Filter quarantined = filter_of(plan);
  std::erase(quarantined.none_of, "trust:quarantined");
  require_any(quarantined, "trust", {"quarantined"});
  ASSIGN_OR_RETURN(const LaneAnswer held, source.search(lane_query(plan, quarantined)));
  answer.count = known_count(anything);
  if (plan.unknown_corpus) {
    answer.reason = "unknown_corpus";
  } else if (!held.candidates.empty()) {
    answer.reason = "all_quarantined";
    answer.count = known_count(held);
  } else if (!anything.candidates.empty()) {
    answer.reason = "filtered_out";
  } else {
    ASSIGN_OR_RETURN(const bool indexed, has_documents());
    answer.reason = indexed ? "no_match" : "nothing_indexed";
  }
  return success();
}

bool has_expired(const store::DocumentRow& row, const QueryPlan& plan) {
  return row.expires_at && !plan.as_of && *row.expires_at <= Clock().now();
}

bool is_wanted(const store::DocumentRow& row, const QueryPlan& plan) {
  if (row.removed_at || !std::ranges::binary_search(plan.corpora, row.corpus)) return false;
  if (row.of_run() && !plan.owner.empty() && row.owner != plan.owner) return false;
  if (!plan.as_of) return row.current();
  return row.seq <= *plan.as_of && (!row.valid_to || *row.valid_to > *plan.as_of);
}

std::string explain_json(const QueryPlan& plan, const Ranking& ranking) {
  json::Writer out;
  out.begin_object().member("text", plan.markup.text).member("profile", plan.profile->name).key("filter");
  write_filter(out, filter_of(plan));
  write_notes(out, ranking.notes);
  out.key("lists").begin_array();
  for (const LaneList& list : ranking.lists) {
    out.begin_object().member("lane", list.lane).member("query", list.query).member("original", list.original ? 1 : 0);
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
  return std::move(out.end_object()).text();
}

std::string result_json(const std::string& query, const Answer& answer) {
  json::Writer out;
  out.begin_object().member("query", query);
  if (!answer.filters.empty()) out.member("filters", answer.filters);
  out.key("cards").begin_array();
  for (const Card& card : answer.cards) write_card(out, card, true);
  out.end_array();
  if (!answer.cursor.empty()) out.member("cursor", answer.cursor);
  if (!answer.reason.empty()) out.member("reason", answer.reason);
  if (answer.count > 0) out.member("count", answer.count);
  if (answer.expired > 0) out.member("expired", answer.expired);
  if (!answer.degraded.empty()) out.member("degraded", answer.degraded);
  out.member("profile", answer.profile).member("plan_hash", answer.plan_hash).member("watermark", answer.watermark);
  if (answer.as_of) out.member("asof", *answer.as_of);
  out.member("lanes", answer.lanes);
  if (!answer.explain.empty()) out.raw_member("explain", answer.explain);
  return std::move(out.end_object()).text();
}

Result<Question> question_of(const json::Value& params) {
  Question question;
  question.mode = mode_of(params["mode"].string_or("hybrid"));
  question.expand = expand_named(params["expand"].string_or(""));
  question.rerank = rerank_named(params["rerank"].string_or(""));
  question.top_k =
      static_cast<std::size_t>(params["topK"].as_int().value_or(static_cast<std::int64_t>(limits::cards_default)));
  question.by_document = params["group"].string_or("chunk") == "document";
  question.profile = params["profile"].string_or("");
  ASSIGN_OR_RETURN(question.wishes, wishes_of(params["filters"]));
  question.cursor = params["cursor"].string_or("");
  question.explain = params["explain"].as_bool().value_or(false);
  question.exact = params["exact"].as_bool().value_or(false);
  return question;
}

}  // namespace muniment::retrieval
