// Queues batches for a slow embedder and embeds them in the background.
#include "retrieval/engine/late_lane.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "retrieval/engine/vector_lanes.hpp"

namespace muniment::retrieval {

namespace {

constexpr std::size_t texts_at_once = 16;
constexpr std::chrono::seconds pause_after_failure{2};
constexpr std::int64_t lag_told_micros = 60'000'000;  // a lag of this time is logged
constexpr int low_priority = 10;                      // niceness: searches and indexing have priority

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
  if (const auto count = waiting_in_.find(entry.corpus); count != waiting_in_.end() && --count->second == 0) {
    waiting_in_.erase(count);
    asked_.erase(entry.corpus);
  }
}

std::int64_t LateLane::given() const {
  const std::lock_guard counts(counts_mutex_);
  return given_;
}

bool LateLane::covers(const std::vector<std::string>& corpora, std::int64_t next_seq) {
  const std::lock_guard counts(counts_mutex_);
  bool waits = false;
  for (const std::string& corpus : corpora) {
    if (!waiting_in_.contains(corpus)) continue;
    asked_[corpus] = ++questions_;
    waits = true;
  }
  return !waits && given_ >= next_seq;
}

std::int64_t LateLane::waiting() const {
  const std::lock_guard counts(counts_mutex_);
  std::int64_t chunks = 0;
  for (const auto& [corpus, count] : waiting_in_) chunks += static_cast<std::int64_t>(count);
  return chunks;
}

std::string LateLane::behind(std::int64_t next_seq) const {
  const std::int64_t chunks = waiting();
  const std::lock_guard counts(counts_mutex_);
  if (!problem_.empty()) return name() + ": " + problem_;
  if (given_ < next_seq) return fmt::format("{}: behind (at {} of {})", name(), given_, next_seq);
  if (chunks == 0) return {};
  const auto micros = static_cast<std::int64_t>(chunk_micros_ * static_cast<double>(chunks));
  return fmt::format("{}: behind ({} chunks wait{})", name(), chunks, micros > 0 ? ", " + human_duration(micros) : "");
}

void LateLane::note_speed(std::size_t chunks, std::chrono::steady_clock::duration took) {
  const double each =
      std::chrono::duration<double, std::micro>(took).count() / static_cast<double>(std::max<std::size_t>(chunks, 1));
  const std::int64_t left = waiting();
  const std::lock_guard counts(counts_mutex_);
  chunk_micros_ = chunk_micros_ == 0 ? each : 0.9 * chunk_micros_ + 0.1 * each;
  const auto micros = static_cast<std::int64_t>(chunk_micros_ * static_cast<double>(left));
  if (std::exchange(told_, micros > lag_told_micros) || !told_) return;
  log_info("a vector lane lags; answers come without it until it has caught up",
           {{"lane", name()}, {"chunks", std::to_string(left)}, {"time", human_duration(micros)}});
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
    const Monotonic began = std::chrono::steady_clock::now();
    const auto vectors = embedder_->embed_parts(views);
    if (vectors) note_speed(views.size(), std::chrono::steady_clock::now() - began);
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

std::string LateLane::corpus_to_embed() const {
  const std::lock_guard counts(counts_mutex_);
  const auto asked = std::ranges::max_element(asked_, {}, [](const auto& one) { return one.second; });
  if (asked != asked_.end()) return asked->first;
  const auto fewest = std::ranges::min_element(waiting_in_, {}, [](const auto& one) { return one.second; });
  return fewest == waiting_in_.end() ? std::string() : fewest->first;
}

// Returns nothing if the first batch of the queue is embedded.
LateLane::Picked LateLane::pick() {
  Picked picked;
  if (std::ranges::all_of(queue_.front().entries, &Entry::settled)) return picked;
  const std::string corpus = corpus_to_embed();
  for (Item& item : queue_) {
    for (Entry& entry : item.entries) {
      if (entry.settled || entry.corpus != corpus) continue;
      picked.push_back(&entry);
      if (picked.size() == texts_at_once) return picked;
    }
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
