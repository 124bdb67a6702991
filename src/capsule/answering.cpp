// Answers queries from a capsule, by the daemon's pipeline.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "capsule/capsule.hpp"
#include "evidence/pointer.hpp"
#include "retrieval/hooks/hooks.hpp"

namespace muniment::capsule {
namespace {

constexpr std::chrono::seconds answer_patience{60};
constexpr const char* owner_of_all = "capsule";

}  // namespace

// Each revision that a query meets is read once.
class Capsule::Source final : public retrieval::PassageSource {
 public:
  Source(Capsule& capsule, const retrieval::QueryPlan& plan, retrieval::Engine::Searcher& searcher)
      : capsule_(capsule), plan_(plan), searcher_(searcher) {}

  Result<retrieval::LaneAnswer> search(const retrieval::LaneQuery& query) override { return searcher_.search(query); }

  Result<std::unordered_map<retrieval::ChunkId, Row>> find(std::span<const retrieval::ChunkId> chunks) override {
    std::unordered_map<retrieval::ChunkId, Row> out;
    for (const retrieval::ChunkId chunk : chunks) {
      const auto number = capsule_.index_->frame_of_chunk(chunk);
      if (!number) continue;
      ASSIGN_OR_RETURN(const Revision* revision, revision_at(*number));
      const auto place = static_cast<std::size_t>(chunk - revision->row.first_chunk);
      if (place >= revision->chunks.size() || !is_wanted(revision->row, plan_)) continue;
      out.emplace(chunk, std::make_shared<store::ChunkInDocument>(
                             store::ChunkInDocument{revision->chunks[place], revision->row, {}}));
    }
    return out;
  }

  // Damage is an error: an answer without the passage would differ from the one before the damage.
  Result<std::optional<std::string>> text_of(const store::ChunkInDocument& item) override {
    ASSIGN_OR_RETURN(const Revision* revision, revision_at(item.document.seq));
    ASSIGN_OR_RETURN(const std::string_view text, capsule::text_of(*revision, item.chunk));
    return std::optional(std::string(text));
  }

  Result<std::map<std::int64_t, double>> feedback_means(const std::vector<std::int64_t>& chunks) override {
    std::map<std::int64_t, std::pair<double, int>> sums;
    const std::int64_t end =
        plan_.as_of ? std::min(*plan_.as_of + 1, capsule_.index_->frames()) : capsule_.index_->frames();
    for (std::int64_t number = 0; number < end; ++number) {
      const FrameRow& row = capsule_.index_->row(number);
      if (row.type != static_cast<std::uint32_t>(FrameType::feedback)) continue;
      ASSIGN_OR_RETURN(const Frame frame, capsule_.index_->frame(number));
      const auto about = json::parse(frame.about);
      if (!about) continue;
      ASSIGN_OR_RETURN(const auto chunk, chunk_of(about->root()["pointer"].string_or("")));
      if (!chunk || !std::ranges::count(chunks, *chunk)) continue;
      auto& [sum, count] = sums[*chunk];
      sum += about->root()["value"].as_double().value_or(0);
      ++count;
    }
    std::map<std::int64_t, double> out;
    for (const auto& [chunk, sum] : sums) out.emplace(chunk, sum.first / sum.second);
    return out;
  }

  Result<std::vector<store::CitedDocument>> cited(const std::vector<store::Citation>& citations) override {
    std::vector<store::CitedDocument> out;
    for (const store::Citation& citation : citations) {
      ASSIGN_OR_RETURN(auto revisions, capsule_.history(citation.corpus, citation.document));
      store::CitedDocument& cited = out.emplace_back();
      for (Revision& one : revisions) {
        if (one.row.revision == citation.revision) cited.document = std::move(one.row);
      }
    }
    return out;
  }

  Deadline deadline() const override { return std::chrono::steady_clock::now() + answer_patience; }

 private:
  Result<const Revision*> revision_at(std::int64_t number) {
    const auto known = revisions_.find(number);
    if (known != revisions_.end()) return &known->second;
    ASSIGN_OR_RETURN(Revision revision, capsule_.index_->revision(number));
    return &revisions_.emplace(number, std::move(revision)).first->second;
  }

  // The chunk that feedback names, in the newest revision of that name.
  Result<std::optional<std::int64_t>> chunk_of(const std::string& pointer) {
    const auto parsed = evidence::parse_pointer(pointer);
    if (!parsed || parsed->kind != evidence::PointerKind::evidence || !parsed->fragment.starts_with('p'))
      return std::optional<std::int64_t>();
    std::optional<std::int64_t> found;
    for (const std::int64_t number : capsule_.index_->revisions(uri_of(parsed->corpus, parsed->document))) {
      ASSIGN_OR_RETURN(const Revision* one, revision_at(number));
      if (one->row.revision == parsed->revision && one->row.corpus == parsed->corpus &&
          one->row.document == parsed->document && parsed->seq >= 0 && parsed->seq < one->row.chunks)
        found = one->row.first_chunk + parsed->seq;
    }
    return found;
  }

  Capsule& capsule_;
  const retrieval::QueryPlan& plan_;
  retrieval::Engine::Searcher& searcher_;
  std::map<std::int64_t, Revision> revisions_;
};

Status Capsule::settle_plan(retrieval::QueryPlan& plan) const {
  for (const std::string& tag : std::vector<std::string>(plan.markup.tags)) {
    const bool known = std::ranges::any_of(plan.corpora, [&](const std::string& corpus) {
      const auto found = index_->catalogue().find(corpus);
      return found != index_->catalogue().end() && found->second.tags.contains(tag);
    });
    if (!known && !plan.corpora.empty()) take_tag_as_text(plan.markup, tag);
  }
  plan.unknown_run = !plan.markup.runs.empty();
  if (!plan.as_of && plan.markup.as_of) {
    const bool is_over = *plan.markup.as_of < Clock().now();
    RETURN_IF_ERROR(seq_as_of(is_over ? *plan.markup.as_of : *plan.markup.as_of_begin));
    plan.as_of = index_->frames_until(plan.markup.as_of->micros) - 1;
  }
  return success();
}

Result<retrieval::Answer> Capsule::answer(const retrieval::Question& question) {
  if (is_new()) return Error(Errc::not_found, path_ + ": no such file. Make it: muniment --capsule FILE ingest FOLDER");
  retrieval::Answer answer;
  ASSIGN_OR_RETURN(const retrieval::HookOptions helpers, hook_options(answer.degraded));
  const retrieval::Hooks hooks(helpers);
  retrieval::Scope scope{owner_of_all, true, {}, {}};
  std::int64_t watermark = 0;  // after the last frame that changed what is found; others may follow it
  std::int64_t passages = 0;
  for (const auto& [corpus, facts] : index_->catalogue()) {
    scope.corpora.push_back(corpus);
    watermark = std::max(watermark, facts.last + 1);
    passages += facts.chunks;
  }
  ASSIGN_OR_RETURN(retrieval::QueryPlan plan, begin_plan(question, scope, hooks));
  RETURN_IF_ERROR(settle_plan(plan));
  end_plan(plan, scope, hooks);
  plan.watermark = watermark;
  plan.of_capsule = true;
  if (!question.cursor.empty()) {
    ASSIGN_OR_RETURN(const retrieval::Cursor cursor, retrieval::parse_cursor(question.cursor));
    if (cursor.hash != plan.hash.substr(0, retrieval::hash_digits))
      return Error(Errc::invalid_argument,
                   "cursor: it belongs to another query. Send it with the same query, filters and topK.");
    plan.from = cursor.from;
    if (cursor.watermark != plan.watermark && !plan.as_of) plan.as_of = cursor.watermark - 1;
  }
  answer.corpora = plan.corpora;
  answer.filters = plan.markup.filters;
  answer.profile = plan.profile->name;
  answer.plan_hash = plan.hash;
  answer.watermark = plan.watermark;
  answer.indexed = passages;
  answer.as_of = plan.as_of;
  if (index_->unindexed_documents() > 0)
    answer.degraded.push_back(fmt::format("{} documents are not indexed yet", index_->unindexed_documents()));
  if (scope.corpora.empty()) {
    answer.reason = plan.unknown_corpus ? "unknown_corpus" : "nothing_indexed";
    return answer;
  }
  ASSIGN_OR_RETURN(retrieval::Engine::Searcher* const searcher, index_->searcher());
  Source source(*this, plan, *searcher);
  retrieval::Ranking ranking;
  if (!plan.corpora.empty()) {
    ASSIGN_OR_RETURN(ranking, rank(plan, source, hooks));
    answer.degraded.insert(answer.degraded.end(), ranking.degraded.begin(), ranking.degraded.end());
    answer.lanes = ranking.identities;
    ASSIGN_OR_RETURN(const auto next, add_cards(answer, plan, ranking.ranked, source));
    for (retrieval::Card& card : answer.cards) card.uri = uri_of(card.corpus, card.document);
    if (next) {
      const std::int64_t shown = plan.as_of ? *plan.as_of + 1 : plan.watermark;
      answer.cursor = retrieval::text_of(retrieval::Cursor{*next, shown, plan.hash, {}});
    }
  }
  if (answer.cards.empty() && answer.expired > 0) {
    answer.reason = "expired";
    answer.count = answer.expired;
  } else if (answer.cards.empty() && plan.from == 0) {
    RETURN_IF_ERROR(add_reason(answer, plan, source, [&]() -> Result<bool> {
      return std::ranges::any_of(plan.corpora, [&](const std::string& corpus) {
        const auto found = index_->catalogue().find(corpus);
        return found != index_->catalogue().end() && found->second.documents > 0;
      });
    }));
  }
  if (question.explain) answer.explain = explain_json(plan, ranking);
  return answer;
}

}  // namespace muniment::capsule
