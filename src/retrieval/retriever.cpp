#include "retrieval/retriever.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "evidence/sample_set.hpp"
#include "retrieval/child/search_client.hpp"
#include "retrieval/plan/blend.hpp"
#include "retrieval/plan/expansions.hpp"
#include "retrieval/sample_answer.hpp"

namespace muniment::retrieval {
namespace {

constexpr double feedback_weight = 0.1;        // of a mean of 1, beside scores of 0…1
constexpr std::size_t ranked_max = limits::ranked_cards_max;   // however few of them a page shows: equal for all pages
constexpr std::size_t spare_rows = 6;          // that are read with a page, in case that some of it are no hits
constexpr std::size_t hash_digits = 16;        // of the plan, in a cursor

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::hybrid: return "hybrid";
    case Mode::lexical: return "lexical";
    case Mode::vector: return "vector";
  }
  return "";
}

std::vector<std::string> labels(std::string_view kind, const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values) out.push_back(std::string(kind) + ":" + value);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void require_any(Filter& filter, std::string_view kind, const std::vector<std::string>& values) {
  if (!values.empty()) filter.all_of.push_back(labels(kind, values));
}

void write_filter(json::Writer& out, const Filter& filter) {
  out.begin_object().key("all_of").begin_array();
  for (const auto& group : filter.all_of) {
    out.begin_array();
    for (const std::string& label : group) out.string(label);
    out.end_array();
  }
  out.end_array();
  out.member("none_of", filter.none_of);
  if (filter.after_us) out.member("after_us", *filter.after_us);
  if (filter.before_us) out.member("before_us", *filter.before_us);
  if (filter.as_of) out.member("as_of", *filter.as_of);
  out.end_object();
}

// Where everything that this principal may see lies.
Filter scope_filter(const Retriever::Plan& plan) {
  Filter filter;
  require_any(filter, "corpus", plan.corpora);
  filter.as_of = plan.as_of;
  return filter;
}

Filter filter_of_plan(const Retriever::Plan& plan) {
  Filter filter = filter_of(plan.markup);
  const Wishes& wishes = plan.question.wishes;
  std::erase_if(filter.all_of, [](const auto& group) { return !group.empty() && group.front().starts_with("corpus:"); });
  require_any(filter, "corpus", plan.corpora);
  require_any(filter, "type", wishes.types);
  require_any(filter, "source", wishes.sources);
  require_any(filter, "trust", wishes.trust);
  require_any(filter, "document", wishes.documents);
  for (const std::string& tag : wishes.tags) filter.all_of.push_back({"tag:" + tag});
  if (wishes.trust.empty()) filter.none_of.push_back("trust:quarantined");
  if (wishes.after) filter.after_us = std::max(filter.after_us.value_or(wishes.after->micros), wishes.after->micros);
  if (wishes.before) filter.before_us = std::min(filter.before_us.value_or(wishes.before->micros), wishes.before->micros);
  std::ranges::sort(filter.all_of);
  filter.as_of = plan.as_of;
  return filter;
}

// "<rank>.<watermark>.<digits of the plan's hash>.<the ranking's name>"
struct Cursor {
  std::size_t from = 0;
  std::int64_t watermark = 0;
  std::string hash;
  std::string ranking;
};

std::string text_of(const Cursor& cursor) { return fmt::format("{}.{}.{}.{}", cursor.from, cursor.watermark, cursor.hash.substr(0, hash_digits), cursor.ranking); }

Result<Cursor> parse_cursor(std::string_view text) {
  const Error bad(Errc::invalid_argument, "cursor: not one that evidence.retrieve answered. Leave it out to begin anew.");
  const std::size_t first = text.find('.'), second = text.find('.', first + 1), third = text.find('.', second + 1);
  if (first == std::string_view::npos || second == std::string_view::npos || third == std::string_view::npos) return bad;
  Cursor out;
  const auto from = std::from_chars(text.data(), text.data() + first, out.from);
  const auto mark = std::from_chars(text.data() + first + 1, text.data() + second, out.watermark);
  if (from.ec != std::errc{} || mark.ec != std::errc{} || from.ptr != text.data() + first || mark.ptr != text.data() + second) return bad;
  out.hash = text.substr(second + 1, third - second - 1);
  out.ranking = text.substr(third + 1);
  return out;
}

// Everything that the answer depends on, but for how far log and indexes have come.
std::string plan_text(const Retriever::Plan& plan, const Scope& scope) {
  json::Writer out;
  out.begin_object().member("query", plan.markup.text);
  out.member("phrases", plan.markup.phrases);
  out.member("mode", name_of(plan.question.mode)).member("top_k", plan.question.top_k).member("by_document", plan.question.by_document ? 1 : 0);
  out.member("profile", plan.profile->name).member("exact", plan.question.exact ? 1 : 0).member("principal", scope.principal);
  out.member("unknown_corpus", plan.unknown_corpus ? 1 : 0).key("filter");
  write_filter(out, filter_of_plan(plan));
  return std::move(out.end_object()).text();
}

}  // namespace

Result<Retriever::Plan> Retriever::plan(const Question& question, const Scope& scope, store::Reader& reader) const {
  Plan plan;
  plan.question = question;
  ASSIGN_OR_RETURN(plan.markup, parse_markup(question.text));
  ASSIGN_OR_RETURN(plan.profile, find_profile(question.profile));
  std::vector<std::string> wanted = question.corpora;
  if (wanted.empty()) {
    wanted = plan.markup.corpora;
  } else if (!plan.markup.corpora.empty()) {  // both: what both allow
    std::erase_if(wanted, [&](const std::string& name) { return std::ranges::find(plan.markup.corpora, name) == plan.markup.corpora.end(); });
  }
  const bool named = !question.corpora.empty() || !plan.markup.corpora.empty();
  plan.samples = wanted.size() == 1 && wanted.front() == evidence::sample_corpus;  // by itself: it is never mixed with what was ingested
  if (plan.samples) plan.corpora = wanted;
  for (const std::string& corpus : named ? wanted : scope.corpora) {
    if (std::ranges::find(scope.corpora, corpus) != scope.corpora.end()) plan.corpora.push_back(corpus);
  }
  std::ranges::sort(plan.corpora);
  plan.unknown_corpus = named && plan.corpora.size() < wanted.size();
  plan.as_of = question.as_of;
  if (!plan.as_of && plan.markup.as_of) {
    ASSIGN_OR_RETURN(plan.as_of, reader.seq_as_of(*plan.markup.as_of));
  }
  plan.hash = to_hex(sha256(plan_text(plan, scope)));
  plan.watermark = indexer_.next_change();
  if (!question.cursor.empty()) {
    ASSIGN_OR_RETURN(const Cursor cursor, parse_cursor(question.cursor));
    if (cursor.hash != plan.hash.substr(0, hash_digits)) {
      return Error(Errc::invalid_argument, "cursor: it belongs to another query. Send it with the same query, filters and topK.");
    }
    plan.from = cursor.from;
    plan.ranking = cursor.ranking;
    // The pages of one answer are those of one state of the index.
    if (cursor.watermark != plan.watermark && !plan.as_of) plan.as_of = cursor.watermark - 1;
  }
  plan.key = fmt::format("{} {} {} {} {} {} {} {}", plan.hash, plan.from, plan.ranking, plan.as_of.value_or(-2), plan.watermark, indexer_.engine_starts(),
                         documents_.last_change(), question.explain ? 1 : 0);
  return plan;
}

// One answer in the making: ranks, then cards.
struct Retriever::Work {
  const Retriever& retriever;
  const Plan& plan;
  store::Reader& reader;
  const Deadline deadline;
  Answer answer;
  LaneAnswer lanes{};

  Result<LaneAnswer> ask(const Filter& filter, Mode mode) const {
    LaneQuery query;
    query.text = plan.markup.text;
    query.phrases = plan.markup.phrases;
    query.corpora = plan.corpora;
    query.mode = mode;
    query.filter = filter;
    query.k = ranked_max;
    query.shown = plan.question.top_k;
    query.profile = plan.profile->name;
    query.exact = plan.question.exact;
    query.explain = plan.question.explain;
    return retriever.search_.search(query, deadline);
  }

  // What people said of the candidates, as of then.
  Status add_feedback() {
    ASSIGN_OR_RETURN(const bool any, retriever.documents_.has_feedback(reader));
    if (!any) return success();
    std::vector<std::int64_t> ids;
    for (const Candidate& candidate : lanes.candidates) ids.push_back(candidate.chunk);
    if (ids.empty()) return success();
    const std::int64_t before = plan.as_of ? *plan.as_of + 1 : retriever.documents_.last_change() + 1;
    ASSIGN_OR_RETURN(const auto means, reader.feedback_means(ids, before));
    if (means.empty()) return success();
    for (Candidate& candidate : lanes.candidates) {
      const auto found = means.find(candidate.chunk);
      if (found != means.end()) candidate.score += feedback_weight * found->second;
    }
    std::ranges::stable_sort(lanes.candidates, std::greater<>{}, &Candidate::score);
    return success();
  }

  bool belongs(const store::ChunkInDocument& item) const {
    const store::DocumentRow& row = item.document;
    if (row.removed_at || !std::ranges::binary_search(plan.corpora, row.corpus)) return false;
    if (!plan.as_of) return row.current();
    return row.seq <= *plan.as_of && (!row.valid_to || *row.valid_to > *plan.as_of);
  }

  // Goes down the ranks from the page's first one until the page is full; what cannot be verified is no hit.
  Status fill_page() {
    const auto& candidates = lanes.candidates;
    const std::size_t top_k = plan.question.top_k;
    const std::vector<std::string> words = words_of(plan.markup.text);
    std::set<std::pair<std::string, std::string>> documents;   // already shown, on this page or before
    std::size_t unverified = 0;
    // Grouped, the pages before decide which documents are new here: the ranks are walked from the first.
    std::size_t place = plan.question.by_document ? 0 : plan.from;
    while (place < candidates.size() && answer.cards.size() < top_k) {
      const std::size_t end = std::min(candidates.size(), place + top_k + spare_rows);
      ASSIGN_OR_RETURN(const auto rows, rows_of(place, end));
      for (; place < end && answer.cards.size() < top_k; ++place) {
        const auto found = rows.find(candidates[place].chunk);
        if (found == rows.end() || !belongs(found->second)) {
          ++unverified;
          continue;
        }
        const store::ChunkInDocument& item = found->second;
        const bool seen = plan.question.by_document && !documents.emplace(item.document.corpus, item.document.document).second;
        if (seen || place < plan.from) continue;
        auto text = read_passage(item, retriever.files_);
        if (!text && text.error().code == Errc::unavailable) return std::move(text).error();
        if (!text) {
          ++unverified;
          continue;
        }
        answer.cards.push_back(make_card(item, *std::move(text), candidates[place], words));
      }
    }
    if (unverified > 0) {
      answer.passing = true;
      answer.degraded.push_back(fmt::format("{} hits were left out: they could not be verified", unverified));
    }
    if (place < candidates.size()) answer.cursor = text_of({place, pages_watermark(), plan.hash, keep_ranking()});
    return success();
  }

  // A later page is of the state that the first one was of.
  std::int64_t pages_watermark() const { return plan.ranking.empty() || !plan.as_of ? plan.watermark : *plan.as_of + 1; }

  // The ranking, for the pages to come: lanes may have joined by then, and documents come.
  std::string keep_ranking() const {
    if (!plan.ranking.empty()) return plan.ranking;
    const std::string name = to_hex(sha256(plan.key + " " + joined(lanes.identities, " "))).substr(0, hash_digits);
    std::size_t bytes = 0;
    for (const Candidate& candidate : lanes.candidates) bytes += sizeof candidate + candidate.lanes.size() * sizeof(candidate.lanes[0]);
    retriever.rankings_.put(name, lanes.candidates, bytes);
    return name;
  }

  // The ranking that an earlier page was of; otherwise it is worked out (again).
  Status rank() {
    if (!plan.ranking.empty()) {
      if (const auto kept = retriever.rankings_.find(plan.ranking)) {
        lanes.candidates = *kept;
        return success();
      }
      answer.passing = true;
      answer.degraded.push_back("cursor: the ranking was not kept and was worked out again");
    }
    ASSIGN_OR_RETURN(lanes, ask(filter_of_plan(plan), plan.question.mode));
    answer.degraded.insert(answer.degraded.end(), lanes.degraded.begin(), lanes.degraded.end());
    answer.passing = answer.passing || lanes.passing;
    answer.lanes = lanes.identities;
    return add_feedback();
  }

  Result<std::map<ChunkId, store::ChunkInDocument>> rows_of(std::size_t from, std::size_t end) const {
    std::vector<std::int64_t> ids;
    for (std::size_t i = from; i < end; ++i) ids.push_back(lanes.candidates[i].chunk);
    ASSIGN_OR_RETURN(auto rows, reader.chunks(ids));
    std::map<ChunkId, store::ChunkInDocument> out;
    for (store::ChunkInDocument& row : rows) out.emplace(static_cast<ChunkId>(row.chunk.chunk_id), std::move(row));
    return out;
  }

  // Nothing was found: why. It says nothing of what the principal may not see.
  Status explain_nothing() {
    const std::int64_t behind = retriever.documents_.last_change() + 1 - retriever.indexer_.next_seq();
    if (plan.corpora.empty()) {
      answer.reason = plan.unknown_corpus ? "unknown_corpus" : "no_match";
      return success();
    }
    if (behind > 0) {
      answer.reason = "index_behind";
      answer.passing = true;
      answer.count = behind;
      return success();
    }
    ASSIGN_OR_RETURN(const LaneAnswer anything, ask(scope_filter(plan), plan.question.mode));
    Filter quarantined = filter_of_plan(plan);
    std::erase(quarantined.none_of, "trust:quarantined");
    require_any(quarantined, "trust", {"quarantined"});
    ASSIGN_OR_RETURN(const LaneAnswer held, ask(quarantined, plan.question.mode));
    answer.count = static_cast<std::int64_t>(anything.candidates.size());
    if (plan.unknown_corpus) {
      answer.reason = "unknown_corpus";
    } else if (!held.candidates.empty()) {
      answer.reason = "all_quarantined";
      answer.count = static_cast<std::int64_t>(held.candidates.size());
    } else {
      answer.reason = anything.candidates.empty() ? "no_match" : "filtered_out";
    }
    return success();
  }

  void write_explain() {
    json::Writer out;
    out.begin_object().member("text", plan.markup.text).member("profile", plan.profile->name).key("filter");
    write_filter(out, filter_of_plan(plan));
    out.key("lists").begin_array();
    for (const LaneList& list : lanes.lists) {
      out.begin_object().member("lane", list.lane).member("query", list.query).member("original", list.original ? 1 : 0);
      out.key("weight").number(list.weight).member("duration_us", list.duration_us).key("hits").begin_array();
      for (std::size_t i = 0; i < list.hits.size() && i < limits::explained_hits_max; ++i) {
        out.begin_object().member("chunk", static_cast<std::int64_t>(list.hits[i].chunk)).key("score").number(list.hits[i].score).end_object();
      }
      out.end_array().member("found", list.hits.size()).end_object();
    }
    out.end_array();
    answer.explain = std::move(out.end_object()).text();
  }

  void answer_from_samples() {
    std::vector<Card> cards = sample_cards(plan.markup.text, plan.markup.phrases, filter_of_plan(plan));
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
    answer.profile = plan.profile->name;
    answer.plan_hash = plan.hash;
    answer.watermark = plan.watermark;
    answer.as_of = plan.as_of;
    if (plan.samples) {
      answer_from_samples();
      return success();
    }
    if (!plan.corpora.empty()) {
      RETURN_IF_ERROR(rank());
      RETURN_IF_ERROR(fill_page());
    }
    if (answer.cards.empty() && plan.from == 0) RETURN_IF_ERROR(explain_nothing());
    if (plan.question.explain) write_explain();
    return success();
  }
};

Result<Answer> Retriever::answer(const Plan& plan, store::Reader& reader, Deadline deadline) const {
  Work work{*this, plan, reader, deadline, {}};
  RETURN_IF_ERROR(work.run());
  return std::move(work.answer);
}

Status Retriever::wait_for(std::int64_t seq, Deadline deadline) const {
  if (!documents_.wait_for(seq + 1, deadline)) {
    return Error(Errc::deadline_exceeded, fmt::format("min_seq: the document tables are behind, at {} of {}.", documents_.next_seq(), seq));
  }
  return indexer_.wait_for(seq + 1, deadline);
}

}  // namespace muniment::retrieval
