// Implements the vector lanes: models, writing and searching.
#include "retrieval/engine/vector_lanes.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/log.hpp"
#include "retrieval/embed/encoder/sentence_encoder.hpp"
#include "retrieval/engine/vector_advance.hpp"

namespace muniment::retrieval {

namespace {

constexpr std::string_view mark_prefix = "mark:";
constexpr const char* lanes_mark = "mark:vectors";
constexpr const char* bound_mark = "mark:bound";
constexpr std::string_view retired_lane = "use-lite/";  // earlier versions had it

std::string_view corpus_of(std::string_view space) { return space.substr(space.find('@') + 1); }

}  // namespace

std::string text_to_embed(const EngineChunk& chunk) {
  return chunk.heading.empty() ? chunk.text : chunk.heading + "\n" + chunk.text;
}

std::string titled_text_to_embed(const EngineChunk& chunk) {
  std::string text = text_to_embed(chunk);
  return chunk.title.empty() || text.starts_with(chunk.title) ? text : chunk.title + "\n" + text;
}

std::string space_of(const Embedder& embedder, std::string_view corpus, std::size_t part) {
  return embedder.identity().text() + (part == 0 ? "" : "#" + std::to_string(part)) + "@" + std::string(corpus);
}

bool is_space_of(const Embedder& embedder, std::string_view space) {
  const std::string identity = embedder.identity().text();
  return space.starts_with(identity) && space.size() > identity.size() &&
         (space[identity.size()] == '@' || space[identity.size()] == '#');
}

VectorLanes::VectorLanes(std::unique_ptr<VectorShard> shard, ModelStore store)
    : shard_(std::move(shard)), store_(std::move(store)), hash_(make_hash_embedder()) {
  const std::string own = hash_->identity().text() + "@";
  for (const SpaceStatus& space : shard_->spaces()) {
    if (space.space == lanes_mark) watermark_ = space.next_seq;
    if (space.space.starts_with(own)) corpora_.emplace(corpus_of(space.space));
  }
}

Result<std::unique_ptr<VectorLanes>> VectorLanes::open(const Options& options) {
  ASSIGN_OR_RETURN(auto shard, VectorShard::open(options.shard_folder));
  std::unique_ptr<VectorLanes> lanes(new VectorLanes(std::move(shard), ModelStore(options.model_folder)));
  ASSIGN_OR_RETURN(const auto stored, lanes->store_.load());
  RETURN_IF_ERROR(lanes->load_models(stored));
  RETURN_IF_ERROR(lanes->open_late_lanes(options));
  return lanes;
}

Result<std::unique_ptr<VectorLanes>> VectorLanes::over(std::unique_ptr<VectorShard> shard, ModelStore store,
                                                       const std::vector<StoredModel>& models) {
  std::unique_ptr<VectorLanes> lanes(new VectorLanes(std::move(shard), std::move(store)));
  RETURN_IF_ERROR(lanes->load_models(models));
  return lanes;
}

Status VectorLanes::load_models(const std::vector<StoredModel>& stored) {
  for (const StoredModel& model : stored) {
    auto opened = open_lsa(model.bytes);
    if (!opened) {
      log_warning("a stored model cannot be opened", {{"corpus", model.corpus}, {"error", opened.error().message}});
      continue;
    }
    (model.waiting ? models_[model.corpus].waiting : models_[model.corpus].current) = *std::move(opened);
  }
  return success();
}

Status VectorLanes::open_late_lanes(const Options& options) {
  RETURN_IF_ERROR(drop_unless([](std::string_view identity) { return !identity.starts_with(retired_lane); }));
  if (!options.models_folder.empty()) RETURN_IF_ERROR(add_encoder(options.models_folder));
  if (!options.remote_missing.empty()) missing_.push_back({options.remote_missing, true, false});
  return options.remote ? add_late_lane(options.remote) : success();
}

Status VectorLanes::add_encoder(const std::string& models_folder) {
  auto encoder = open_encoder(models_folder);
  if (encoder) return add_late_lane(*std::move(encoder));
  missing_.push_back({"encoder: " + encoder.error().message, false, encoder.error().code == Errc::not_found});
  return success();
}

Status VectorLanes::add_late_lane(std::shared_ptr<Embedder> embedder) {
  RETURN_IF_ERROR(drop_others_of(*embedder));
  late_.push_back(std::make_unique<LateLane>(std::move(embedder), *shard_));
  return success();
}

// Drops the vectors of an earlier model of the same lane, which are not used any more.
Status VectorLanes::drop_others_of(const Embedder& embedder) {
  const std::string own = embedder.identity().text(), family = embedder.identity().name + "/";
  return drop_unless([&](std::string_view identity) { return identity == own || !identity.starts_with(family); });
}

Status VectorLanes::drop_unless(const std::function<bool(std::string_view identity)>& kept) {
  for (const SpaceStatus& space : shard_->spaces()) {
    std::string_view identity = space.space;
    if (identity.starts_with(mark_prefix)) identity.remove_prefix(mark_prefix.size());
    if (kept(identity.substr(0, identity.find_first_of("#@")))) continue;
    log_info("vectors of another model are dropped", {{"space", space.space}});
    RETURN_IF_ERROR(shard_->drop(space.space));
  }
  return success();
}

Status VectorLanes::index(const EngineBatch& batch) {
  if (batch.next_seq > watermark()) {
    VectorAdvance advance(*shard_, batch);
    RETURN_IF_ERROR(advance.embed(*hash_));
    for (const auto& [corpus, models] : models_) {
      if (models.current) RETURN_IF_ERROR(advance.embed_corpus(*models.current, corpus));
      if (models.waiting) RETURN_IF_ERROR(advance.embed_corpus(*models.waiting, corpus));
    }
    RETURN_IF_ERROR(
        advance.write([this](std::string_view space) { return is_late(space) || space.starts_with(mark_prefix); }));
    RETURN_IF_ERROR(mark(lanes_mark, batch.next_seq));
    watermark_.store(batch.next_seq, std::memory_order_release);
    const std::lock_guard lock(corpora_mutex_);
    for (const EngineChunk& chunk : batch.add) corpora_.insert(chunk.corpus);
  }
  for (const auto& lane : late_) RETURN_IF_ERROR(lane->take(batch));
  return success();
}

bool VectorLanes::is_late(std::string_view space) const {
  return std::any_of(late_.begin(), late_.end(),
                     [&](const auto& lane) { return is_space_of(lane->embedder(), space); });
}

const LateLane* VectorLanes::late_lane(std::string_view name) const {
  const auto found = std::find_if(late_.begin(), late_.end(), [&](const auto& lane) { return lane->name() == name; });
  return found == late_.end() ? nullptr : found->get();
}

Status VectorLanes::mark(const char* space, std::int64_t next_seq) {
  VectorBatch mark;
  mark.space = space;
  mark.dimension = 1;
  mark.next_seq = next_seq;
  return shard_->write(mark);
}

std::int64_t VectorLanes::bound() const {
  std::int64_t bound = watermark();
  for (const SpaceStatus& space : shard_->spaces()) {
    if (space.space == bound_mark) bound = std::max(bound, space.next_seq);
  }
  return bound;
}

Status VectorLanes::set_bound(std::int64_t next_seq) { return mark(bound_mark, next_seq); }

Status VectorLanes::set_model(const EngineModel& model) {
  ASSIGN_OR_RETURN(std::shared_ptr<Embedder> opened, open_lsa(model.bytes));
  const std::string identity = opened->identity().text();
  const auto known = models_.find(model.corpus);
  std::shared_ptr<Embedder> replaced;
  if (known != models_.end()) {
    const auto same = [&](const std::shared_ptr<Embedder>& one) { return one && one->identity().text() == identity; };
    if (same(known->second.current) || same(known->second.waiting)) return success();
    replaced = known->second.waiting;
  }
  RETURN_IF_ERROR(store_.put_waiting(model.corpus, model.bytes));
  {
    const std::lock_guard lock(models_mutex_);
    models_[model.corpus].waiting = std::move(opened);
  }
  return replaced ? shard_->drop(space_of(*replaced, model.corpus)) : success();
}

Status VectorLanes::embed_again(const std::string& corpus, const std::vector<EngineChunk>& chunks, bool last) {
  const auto known = models_.find(corpus);
  if (known == models_.end() || !known->second.waiting)
    return Error(Errc::conflict, "no model of " + corpus + " waits to be filled");
  EngineBatch batch;
  batch.add = chunks;
  VectorAdvance advance(*shard_, batch);
  RETURN_IF_ERROR(advance.embed_corpus(*known->second.waiting, corpus));
  RETURN_IF_ERROR(advance.write_in_place());
  return last ? install_waiting(corpus) : success();
}

Status VectorLanes::install_waiting(const std::string& corpus) {
  RETURN_IF_ERROR(store_.promote(corpus));
  std::shared_ptr<Embedder> before;
  {
    const std::lock_guard lock(models_mutex_);
    Models& models = models_[corpus];
    before = std::exchange(models.current, std::move(models.waiting));
    models.waiting.reset();
  }
  ++swaps_;
  return before ? shard_->drop(space_of(*before, corpus)) : success();
}

std::int64_t VectorLanes::wanted_from() const {
  std::int64_t from = watermark();
  for (const auto& lane : late_) from = std::min(from, lane->given());
  return from;
}

std::vector<std::string> VectorLanes::all_corpora() const {
  const std::lock_guard lock(corpora_mutex_);
  return {corpora_.begin(), corpora_.end()};
}

std::vector<std::string> VectorLanes::available(const std::vector<std::string>& corpora, std::int64_t next_seq,
                                                LaneAnswer& answer) const {
  std::vector<std::string> lanes;
  std::vector<std::string>& degraded = answer.degraded;
  if (watermark() < next_seq) {
    answer.passing = true;
    degraded.push_back("vectors: behind (at " + std::to_string(watermark()) + " of " + std::to_string(next_seq) + ")");
  } else {
    lanes.emplace_back("hash");
    std::size_t with = 0;
    bool all = true;
    {
      const std::lock_guard lock(models_mutex_);
      const std::lock_guard known(corpora_mutex_);
      for (const std::string& corpus : corpora) {
        if (!corpora_.contains(corpus)) continue;  // the corpus is empty
        const auto found = models_.find(corpus);
        if (found != models_.end() && found->second.current)
          ++with;
        else
          all = false;  // a small corpus has no model
      }
    }
    if (with > 0 && all) lanes.emplace_back("lsa");
  }
  for (const auto& lane : late_) {
    const std::string behind = lane->covers(corpora, next_seq) ? std::string() : lane->behind(next_seq);
    if (behind.empty())
      lanes.push_back(lane->name());
    else
      answer.waiting.push_back(lane->name()), degraded.push_back(behind);
  }
  std::ranges::sort(answer.waiting);
  for (const Missing& lane : missing_) {
    degraded.push_back(lane.why);
    answer.passing = answer.passing || lane.passing;
  }
  return lanes;
}

std::shared_ptr<Embedder> VectorLanes::embedder_for(std::string_view lane, const std::string& corpus) const {
  const auto ours = [](Embedder* embedder) {
    return std::shared_ptr<Embedder>(std::shared_ptr<void>(), embedder);
  };  // outlives every search
  if (lane == "hash") return ours(hash_.get());
  if (const LateLane* late = late_lane(lane)) return ours(&late->embedder());
  const std::lock_guard lock(models_mutex_);
  const auto found = models_.find(corpus);
  return lane == "lsa" && found != models_.end() ? found->second.current : nullptr;
}

// Repeats a search that overlapped with a change of model, since it may have read a space that was being removed.
Result<std::vector<Hit>> VectorLanes::search(const Question& question, std::set<std::string>& identities) const {
  while (true) {
    const std::uint64_t swaps = swaps_;
    std::set<std::string> used;
    auto hits = search_once(question, used);
    if (swaps_ != swaps) continue;
    identities.merge(used);
    return hits;
  }
}

// A chunk's score is that of its best part.
Status VectorLanes::search_corpus(const Question& question, const Embedder& embedder, const std::string& corpus,
                                  std::span<const float> vector, std::vector<Hit>& hits) const {
  std::string space = space_of(embedder, corpus);
  ASSIGN_OR_RETURN(std::vector<Hit> found, shard_->search(space, vector, question.filter, question.how));
  for (std::size_t part = 1; shard_->has(space = space_of(embedder, corpus, part)); ++part) {
    ASSIGN_OR_RETURN(const auto more, shard_->search(space, vector, question.filter, question.how));
    std::unordered_map<ChunkId, Hit*> known;
    for (Hit& hit : found) known.emplace(hit.chunk, &hit);
    std::vector<Hit> added;
    for (const Hit& hit : more) {
      if (const auto same = known.find(hit.chunk); same == known.end())
        added.push_back(hit);
      else
        same->second->score = std::max(same->second->score, hit.score);
    }
    found.insert(found.end(), added.begin(), added.end());
  }
  hits.insert(hits.end(), found.begin(), found.end());
  return success();
}

Result<std::vector<Hit>> VectorLanes::search_once(const Question& question, std::set<std::string>& identities) const {
  std::map<std::shared_ptr<Embedder>, std::vector<float>> embedded;  // the query, once for each embedder
  std::vector<Hit> hits;
  for (const std::string& corpus : question.corpora) {
    const std::shared_ptr<Embedder> embedder = embedder_for(question.lane, corpus);
    if (!embedder) continue;
    const auto [vector, is_new] = embedded.try_emplace(embedder);
    if (is_new) {
      ASSIGN_OR_RETURN(Vectors made, embedder->embed({&question.text, 1}, TextKind::query));
      vector->second = std::move(made.at(0));
    }
    RETURN_IF_ERROR(search_corpus(question, *embedder, corpus, vector->second, hits));
    identities.insert(embedder->identity().text());
  }
  std::sort(hits.begin(), hits.end(),
            [](const Hit& a, const Hit& b) { return a.score != b.score ? a.score > b.score : a.chunk < b.chunk; });
  if (hits.size() > question.how.k) hits.resize(question.how.k);
  return hits;
}

std::vector<EngineModelStatus> VectorLanes::models() const {
  const std::lock_guard lock(models_mutex_);
  std::vector<EngineModelStatus> out;
  for (const auto& [corpus, models] : models_) {
    if (models.current) out.push_back({corpus, models.current->identity().text(), true});
    if (models.waiting) out.push_back({corpus, models.waiting->identity().text(), false});
  }
  return out;
}

std::vector<std::string> VectorLanes::degraded() const {
  std::vector<std::string> out;
  for (const Missing& lane : missing_) {
    if (!lane.passing) out.push_back(lane.why);
  }
  return out;
}

std::vector<std::string> VectorLanes::behind(std::int64_t next_seq) const {
  std::vector<std::string> out;
  for (const auto& lane : late_) {
    if (std::string text = lane->behind(next_seq); !text.empty()) out.push_back(std::move(text));
  }
  return out;
}

std::int64_t VectorLanes::waiting() const {
  std::int64_t chunks = 0;
  for (const auto& lane : late_) chunks += lane->waiting();
  return chunks;
}

std::vector<std::string> VectorLanes::absent() const {
  std::vector<std::string> out;
  for (const Missing& lane : missing_) {
    if (lane.absent) out.push_back(lane.why);
  }
  return out;
}

}  // namespace muniment::retrieval
