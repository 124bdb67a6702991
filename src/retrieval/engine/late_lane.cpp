// Queues batches for a slow embedder and embeds them in the background.
#include "retrieval/engine/late_lane.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "retrieval/engine/vector_lanes.hpp"

namespace muniment::retrieval {

namespace {

constexpr std::size_t texts_at_once = 16;
constexpr std::chrono::seconds pause_after_failure{2};
constexpr int low_priority = 10;  // niceness: searches and indexing have priority

std::int64_t stored_position(const VectorShard& shard, const std::string& space) {
  for (const SpaceStatus& one : shard.spaces()) {
    if (one.space == space) return one.next_seq;
  }
  return 0;
}

}  // namespace

LateLane::LateLane(std::shared_ptr<Embedder> embedder, VectorShard& shard)
    : embedder_(std::move(embedder)), shard_(shard), mark_("mark:" + embedder_->identity().text()) {
  given_ = stored_position(shard_, mark_);
  worker_.start(name(), [this] { run(); });
}

Status LateLane::take(const EngineBatch& batch) {
  const auto lock = worker_.lock();
  RETURN_IF_ERROR(failed_);
  RETURN_IF_ERROR(apply_endings(batch));
  const std::lock_guard counts(counts_mutex_);
  if (batch.next_seq <= given_) return success();
  // Batches were skipped while the embedder was unavailable; the queue is empty now, so it can receive them.
  if (missed_ && queue_.empty() && batch.from_seq > given_) {
    return Error(Errc::conflict, name() + ": the lane is at " + std::to_string(given_) + ", and the batch begins at " +
                                     std::to_string(batch.from_seq));
  }
  if (batch.from_seq >= 0 && batch.from_seq <= given_) missed_ = false;
  missed_ = missed_ || (batch.from_seq > given_) || bytes_ > limits::late_queue_bytes_max;
  if (missed_) return success();  // it remains behind until it receives everything from `given_` on
  Item item{batch.next_seq, {}};
  for (const EngineChunk& chunk : batch.add) {
    if (std::find(batch.remove.begin(), batch.remove.end(), chunk.id) != batch.remove.end()) continue;
    std::string text = embedder_->reads_titles() ? titled_text_to_embed(chunk) : text_to_embed(chunk);
    item.entries.push_back({chunk.id, chunk.corpus, std::move(text), chunk.facts, false});
  }
  queue_.push_back(std::move(item));
  for (Entry& entry : queue_.back().entries) {
    for (const auto& [id, valid_to] : batch.close) {
      if (id == entry.id) entry.facts.valid_to = std::min(entry.facts.valid_to, valid_to);
    }
    if (const auto [place, is_new] = waiting_.try_emplace(entry.id, &entry); !is_new) entry.settled = true;
    if (entry.settled) continue;
    bytes_ += memory_of(entry);
    ++waiting_in_[entry.corpus];
  }
  given_ = batch.next_seq;
  worker_.notify();
  return success();
}

// Applies closings and removals at once, to embedded and to queued chunks. The lock must be held.
Status LateLane::apply_endings(const EngineBatch& batch) {
  for (const auto& [id, valid_to] : batch.close) {
    if (const auto found = waiting_.find(id); found != waiting_.end()) found->second->facts.valid_to = valid_to;
  }
  for (const ChunkId id : batch.remove) {
    if (const auto found = waiting_.find(id); found != waiting_.end()) settle(*found->second);
  }
  std::map<std::string, VectorBatch> batches;
  for (const auto& [id, valid_to] : batch.close) {
    for (const std::string& space : shard_.spaces_with(id)) {
      if (is_space_of(*embedder_, space)) batches[space].close.emplace_back(id, valid_to);
    }
  }
  if (batches.empty() && batch.remove.empty()) return success();
  for (const SpaceStatus& space : shard_.spaces()) {
    if (!is_space_of(*embedder_, space.space) || (batch.remove.empty() && !batches.contains(space.space))) continue;
    VectorBatch& ending = batches[space.space];
    ending.space = space.space;
    ending.dimension = space.dimension;
    ending.next_seq = space.next_seq;
    ending.remove = batch.remove;
    RETURN_IF_ERROR(shard_.write(ending));
  }
  return success();
}

// Short passages take most of their memory beside their text.
std::size_t LateLane::memory_of(const Entry& entry) {
  constexpr std::size_t place_in_maps = 64;
  std::size_t bytes = sizeof entry + place_in_maps + entry.text.capacity() + entry.corpus.capacity();
  for (const std::string& label : entry.facts.labels) bytes += sizeof label + label.capacity();
  return bytes;
}

void LateLane::settle(Entry& entry) {
  entry.settled = true;
  waiting_.erase(entry.id);
  bytes_ -= memory_of(entry);
  std::string().swap(entry.text);
  std::vector<std::string>().swap(entry.facts.labels);
  const std::lock_guard counts(counts_mutex_);
  if (const auto count = waiting_in_.find(entry.corpus); count != waiting_in_.end() && --count->second == 0)
    waiting_in_.erase(count);
}

std::int64_t LateLane::given() const {
  const std::lock_guard counts(counts_mutex_);
  return given_;
}

bool LateLane::covers(const std::vector<std::string>& corpora, std::int64_t next_seq) const {
  const std::lock_guard counts(counts_mutex_);
  if (given_ < next_seq) return false;
  return std::none_of(corpora.begin(), corpora.end(),
                      [this](const std::string& corpus) { return waiting_in_.contains(corpus); });
}

std::string LateLane::behind(std::int64_t next_seq) const {
  const std::lock_guard counts(counts_mutex_);
  if (!problem_.empty()) return name() + ": " + problem_;
  if (given_ < next_seq)
    return name() + ": behind (at " + std::to_string(given_) + " of " + std::to_string(next_seq) + ")";
  std::size_t chunks = 0;
  for (const auto& [corpus, count] : waiting_in_) chunks += count;
  return chunks == 0 ? std::string() : name() + ": behind (" + std::to_string(chunks) + " chunks wait)";
}

void LateLane::run() {
  ::setpriority(PRIO_PROCESS, 0, low_priority);  // Linux sets this for the calling thread alone
  auto lock = worker_.lock();
  while (worker_.wait(lock, [this] { return !queue_.empty() && failed_.ok(); })) {
    const Picked picked = pick();
    if (picked.empty()) {
      failed_ = finish_first();
      continue;
    }
    std::vector<std::string> texts;  // copies, because a removal may clear the queued text
    for (const Entry* entry : picked) texts.push_back(entry->text);
    lock.unlock();
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const auto vectors = embedder_->embed_parts(views);
    lock.lock();
    {
      const std::lock_guard counts(counts_mutex_);
      problem_ = vectors ? std::string() : vectors.error().message;
    }
    if (vectors)
      failed_ = write(picked, *vectors);
    else
      worker_.pause(lock, pause_after_failure);
    if (!failed_) log_error("a vector lane cannot be written", {{"lane", name()}, {"error", failed_.error().message}});
  }
}

LateLane::Picked LateLane::pick() {
  Picked picked;
  for (Entry& entry : queue_.front().entries) {
    if (!entry.settled && picked.size() < texts_at_once) picked.push_back(&entry);
  }
  return picked;
}

// The spaces keep their own position, which is not used: the lane's position is that of the mark. (It is not 0 if the
// lane was missing for a while and other lanes handled the closings.) The lock must be held.
Status LateLane::write(const Picked& picked, const std::vector<Vectors>& vectors) {
  std::map<std::string, VectorBatch> batches;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    if (picked[i]->settled) continue;
    for (std::size_t part = 0; part < vectors[i].size(); ++part) {
      VectorBatch& batch = batches[space_of(*embedder_, picked[i]->corpus, part)];
      batch.add.push_back({picked[i]->id, vectors[i][part], picked[i]->facts});
    }
  }
  for (auto& [space, batch] : batches) {
    batch.space = space;
    batch.dimension = embedder_->identity().dimension;
    batch.next_seq = stored_position(shard_, space);
    RETURN_IF_ERROR(shard_.write(batch));
  }
  for (Entry* entry : picked) {
    if (!entry->settled) settle(*entry);
  }
  return success();
}

Status LateLane::finish_first() {
  VectorBatch mark;
  mark.space = mark_;
  mark.dimension = 1;
  mark.next_seq = queue_.front().next_seq;
  RETURN_IF_ERROR(shard_.write(mark));
  queue_.pop_front();
  return success();
}

}  // namespace muniment::retrieval
