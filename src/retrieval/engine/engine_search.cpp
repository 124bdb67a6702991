// Runs one query in the engine: chooses the lanes, asks each for the query and its expansions, and fuses the results
// into one ranking.
#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <set>
#include <unordered_set>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "retrieval/engine/engine_parts.hpp"
#include "retrieval/engine/side_thread.hpp"
#include "retrieval/lexical/terms.hpp"
#include "retrieval/plan/fusion.hpp"

namespace muniment::retrieval {

namespace {

// After this time a lane gets no further expansions of a query: its embedder is slow, and the query has a deadline.
constexpr std::chrono::seconds expansions_time_max{2};

LaneChoice choice_of(Mode mode) {
  switch (mode) {
    case Mode::hybrid: return LaneChoice::all;
    case Mode::lexical: return LaneChoice::lexical_only;
    case Mode::vector: return LaneChoice::vectors_only;
  }
  return LaneChoice::all;
}

struct TimedHits {
  Result<std::vector<Hit>> hits;
  std::int64_t duration_us = 0;
};

template <typename Work>
TimedHits timed(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  auto hits = work();
  return {std::move(hits),
          std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count()};
}

// A query in progress.
class Search {
 public:
  Search(const EngineParts& parts, LexicalReader& reader, SideThread& side, const LaneQuery& query,
         const Profile& profile)
      : parts_(parts), reader_(reader), side_(side), query_(query), profile_(profile), corpora_(query.corpora) {
    if (corpora_.empty()) corpora_ = parts.vectors->all_corpora();
    std::sort(corpora_.begin(), corpora_.end());
    corpora_.erase(std::unique(corpora_.begin(), corpora_.end()), corpora_.end());
  }

  ~Search() {
    if (ahead_.valid()) ahead_.wait();  // it reads members that are about to be destroyed
  }

  Result<LaneAnswer> run();

 private:
  using Lanes = std::vector<LaneWeight>;
  std::vector<std::string> available_lanes();
  Lanes chosen(const std::vector<std::string>& available) const;
  Result<Lanes> ask_lanes(std::vector<std::string>& available);
  void keep_lists_of(const Lanes& lanes);
  Status ask_lane(const LaneWeight& lane);
  Status ask(const LaneWeight& lane, const std::string& text, bool original);
  void look_for_words_ahead(const Lanes& lanes);
  Result<std::vector<Hit>> lexical_hits(const std::string& text);
  Result<std::vector<Hit>> vector_hits(std::string_view lane, const std::string& text);
  Status discount_lists();
  std::size_t wanted() const { return std::max(profile_.candidates, query_.k); }
  Status add_typo_lane(Lanes& lanes, const std::vector<std::string>& available);
  Status keep_phrases();
  void fuse_lists();
  Status count_unfiltered();

  const EngineParts& parts_;
  LexicalReader& reader_;  // used by the side thread while ahead_ is in progress
  SideThread& side_;
  const LaneQuery& query_;
  const Profile& profile_;
  std::vector<std::string> corpora_;
  std::map<std::string, std::set<std::string>, std::less<>> identities_;  // by lane
  std::set<std::string, std::less<>> failed_;  // lanes whose embedder is unavailable at present
  LaneAnswer answer_;
  std::future<TimedHits> ahead_;  // hits of the lexical lane for the query itself
};

Result<LaneAnswer> Search::run() {
  std::vector<std::string> available = available_lanes();
  answer_.watermark = std::min(parts_.lexical->watermark(), parts_.vectors->watermark());
  if (query_.only_lanes) return std::move(answer_);
  ASSIGN_OR_RETURN(Lanes lanes, ask_lanes(available));
  RETURN_IF_ERROR(add_typo_lane(lanes, available));
  RETURN_IF_ERROR(keep_phrases());
  RETURN_IF_ERROR(discount_lists());
  fuse_lists();
  RETURN_IF_ERROR(count_unfiltered());
  std::set<std::string> identities;
  for (auto& [lane, of_lane] : identities_) identities.merge(of_lane);
  answer_.identities.assign(identities.begin(), identities.end());
  if (!query_.explain) answer_.lists.clear();
  return std::move(answer_);
}

// Leaves out a lane that lacks earlier documents, because a partial lane would rank documents by their age.
std::vector<std::string> Search::available_lanes() {
  const std::int64_t reached = parts_.reached;
  std::vector<std::string> lanes;
  if (query_.mode != Mode::lexical) lanes = parts_.vectors->available(corpora_, reached, answer_);
  if (parts_.lexical->watermark() >= reached) {
    lanes.emplace_back("lexical");
  } else {
    answer_.passing = true;
    answer_.degraded.push_back("lexical: behind (at " + std::to_string(parts_.lexical->watermark()) + " of " +
                               std::to_string(reached) + ")");
  }
  return lanes;
}

Search::Lanes Search::chosen(const std::vector<std::string>& available) const {
  Lanes lanes = choose_lanes(profile_, choice_of(query_.mode), available);
  // Every profile uses the lexical lane; while that index is filled again, the other lanes answer alone.
  if (lanes.empty() && query_.mode == Mode::hybrid) lanes = choose_lanes(profile_, LaneChoice::vectors_only, available);
  return lanes;
}

// If a lane's embedder fails, the query runs as it would without that lane. The lexical hits are collected last, since
// their search runs in parallel.
Result<Search::Lanes> Search::ask_lanes(std::vector<std::string>& available) {
  look_for_words_ahead(chosen(available));
  for (;;) {
    Lanes lanes = chosen(available);
    keep_lists_of(lanes);
    Lanes order = lanes;
    std::stable_partition(order.begin(), order.end(), [](const LaneWeight& lane) { return lane.lane != "lexical"; });
    for (const LaneWeight& lane : order) {
      const bool asked =
          std::ranges::any_of(answer_.lists, [&](const LaneList& list) { return list.lane == lane.lane; });
      if (!asked) RETURN_IF_ERROR(ask_lane(lane));
      if (failed_.contains(lane.lane)) break;
    }
    if (std::erase_if(available, [this](const std::string& lane) { return failed_.contains(lane); }) > 0) continue;
    keep_lists_of(lanes);
    return lanes;
  }
}

// A vector lane takes about as long, and does not use the lexical index.
void Search::look_for_words_ahead(const Lanes& lanes) {
  const auto is_lexical = [](const LaneWeight& lane) { return lane.lane == "lexical"; };
  if (lanes.size() < 2 || std::ranges::none_of(lanes, is_lexical)) return;
  ahead_ = side_.run([this] { return timed([this] { return lexical_hits(query_.text); }); });
}

// Drops the lists of other lanes, and gives the remaining ones their new weights and order.
void Search::keep_lists_of(const Lanes& lanes) {
  const auto weight_of = [&](const LaneList& list) {
    return std::ranges::find(lanes, std::string_view(list.lane), &LaneWeight::lane);
  };
  std::erase_if(answer_.lists, [&](const LaneList& list) { return weight_of(list) == lanes.end(); });
  for (LaneList& list : answer_.lists) list.weight = weight_of(list)->weight;
  std::ranges::stable_sort(answer_.lists, {}, weight_of);
  std::erase_if(identities_, [&](const auto& known) {
    return std::ranges::find(lanes, std::string_view(known.first), &LaneWeight::lane) == lanes.end();
  });
}

Status Search::ask_lane(const LaneWeight& lane) {
  const auto begin = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(ask(lane, query_.text, true));
  for (const std::string& text : lane.lane == "lexical" ? query_.lexical_expansions : query_.vector_expansions) {
    if (failed_.contains(lane.lane)) return success();
    if (std::chrono::steady_clock::now() - begin > expansions_time_max) {
      answer_.passing = true;
      answer_.degraded.push_back(std::string(lane.lane) + ": too slow to be asked for every expansion");
      return success();
    }
    RETURN_IF_ERROR(ask(lane, text, false));
  }
  return success();
}

Status Search::ask(const LaneWeight& lane, const std::string& text, bool original) {
  const bool lexical = lane.lane == "lexical";
  if (lexical) identities_["lexical"].emplace(term_rules);
  auto [hits, duration_us] = lexical && original && ahead_.valid()
                                 ? ahead_.get()
                                 : timed([&] { return lexical ? lexical_hits(text) : vector_hits(lane.lane, text); });
  if (!hits) {
    Error error = parts_.judged(std::move(hits).error(), lexical ? parts_.lexical_folder : parts_.vector_folder);
    // An unavailable embedder removes its lane; a damaged index ends the query.
    if (error.code != Errc::unavailable || lexical) return error;
    answer_.passing = true;
    answer_.degraded.push_back(std::string(lane.lane) + ": " + error.message);
    failed_.emplace(lane.lane);
    return success();
  }
  answer_.lists.push_back({std::string(lane.lane), text, original, lane.weight, *std::move(hits), duration_us});
  return success();
}

Result<std::vector<Hit>> Search::lexical_hits(const std::string& text) {
  return reader_.search({text, query_.phrases, {}}, query_.filter, wanted());
}

Result<std::vector<Hit>> Search::vector_hits(std::string_view lane, const std::string& text) {
  const std::string words = query_.phrases.empty() ? text : text + " " + joined(query_.phrases, " ");
  return parts_.vectors->search({lane, words, corpora_, query_.filter, {wanted(), query_.exact, 0}},
                                identities_[std::string(lane)]);
}

// A vector lane's score of a chunk of a few words counts less.
Status Search::discount_lists() {
  for (LaneList& list : answer_.lists) {
    if (list.lane == "lexical") continue;
    const auto lengths = reader_.words_of(list.hits);
    if (!lengths) return parts_.judged(Error(lengths.error()), parts_.lexical_folder);
    discount_short(profile_, list.lane, list.hits, *lengths);
  }
  return success();
}

Status Search::add_typo_lane(Lanes& lanes, const std::vector<std::string>& available) {
  std::size_t lexical_hits = 0;
  for (const LaneList& list : answer_.lists) {
    if (list.lane == "lexical") lexical_hits = std::max(lexical_hits, list.hits.size());
  }
  if (!typo_lane_joins(lanes, lexical_hits, query_.shown) ||
      std::find(available.begin(), available.end(), "hash") == available.end())
    return success();
  lanes = with_typo_lane(profile_, lanes);
  keep_lists_of(lanes);
  return ask_lane(lanes.back());
}

// Every hit must contain the phrases, and only the lexical index has positions.
Status Search::keep_phrases() {
  if (query_.phrases.empty() || query_.mode == Mode::lexical) return success();
  auto with = reader_.search({{}, query_.phrases, {}}, query_.filter, limits::lexical_hits_max);
  if (!with) return parts_.judged(std::move(with).error(), parts_.lexical_folder);
  std::unordered_set<ChunkId> allowed;
  for (const Hit& hit : *with) allowed.insert(hit.chunk);
  for (LaneList& list : answer_.lists)
    std::erase_if(list.hits, [&](const Hit& hit) { return !allowed.contains(hit.chunk); });
  return success();
}

void Search::fuse_lists() {
  std::vector<RankedList> lists;
  for (const LaneList& list : answer_.lists) lists.push_back({list.lane, list.weight, list.original, list.hits});
  weigh_lanes(profile_, lists);
  for (std::size_t i = 0; i < lists.size(); ++i) answer_.lists[i].weight = lists[i].weight;
  const std::vector<Fused> fused = fuse(profile_, lists);
  for (std::size_t i = 0; i < fused.size() && answer_.candidates.size() < query_.k; ++i) {
    if (!is_near(profile_, fused[i], lists)) continue;
    Candidate candidate{
        fused[i].chunk, fused[i].score, {}, fused[i].best_rank, confidence_of(profile_, fused[i].score, lists)};
    for (const auto& [lane, score] : fused[i].lanes) candidate.lanes.emplace_back(lane, score);
    answer_.candidates.push_back(std::move(candidate));
  }
}

Status Search::count_unfiltered() {
  if (!answer_.candidates.empty() || query_.filter.empty()) return success();
  auto count = reader_.count_unfiltered({query_.text, query_.phrases, {}});
  if (!count) return parts_.judged(std::move(count).error(), parts_.lexical_folder);
  answer_.unfiltered = *count;
  return success();
}

class EngineSearcher : public Engine::Searcher {
 public:
  EngineSearcher(const EngineParts& parts, std::unique_ptr<LexicalReader> reader)
      : parts_(parts), reader_(std::move(reader)) {}

  Result<LaneAnswer> search(const LaneQuery& query) override {
    ASSIGN_OR_RETURN(const Profile* profile, find_profile(query.profile));
    RETURN_IF_ERROR(parts_.check_folders());
    return Search(parts_, *reader_, side_, query, *profile).run();
  }

 private:
  const EngineParts& parts_;
  const std::unique_ptr<LexicalReader> reader_;
  SideThread side_{"words"};
};

}  // namespace

std::unique_ptr<Engine::Searcher> make_searcher(const EngineParts& parts, std::unique_ptr<LexicalReader> reader) {
  return std::make_unique<EngineSearcher>(parts, std::move(reader));
}

}  // namespace muniment::retrieval
