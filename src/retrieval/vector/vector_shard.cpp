// The shard: its spaces, and the locks of the writer and the readers. Its parts are advance.hpp (a write),
// live_search.hpp and history.hpp (a search), loading.hpp (a start) and record_store.hpp (the disk).
#include "retrieval/vector/vector_shard.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "base/limits.hpp"
#include "retrieval/vector/advance.hpp"
#include "retrieval/vector/compiled_filter.hpp"
#include "retrieval/vector/live_search.hpp"
#include "retrieval/vector/records/history.hpp"
#include "retrieval/vector/records/loading.hpp"
#include "retrieval/vector/records/record_store.hpp"
#include "retrieval/vector/records/records.hpp"
#include "retrieval/vector/space.hpp"

namespace muniment::retrieval {
namespace {

using namespace vec;

class StoredVectorShard : public VectorShard {
 public:
  StoredVectorShard(std::unique_ptr<RecordStore> store, Loaded loaded)
      : store_(std::move(store)), header_(loaded.header), spaces_(std::move(loaded.spaces)), moment_(store_->now()) {}

  Status write(const VectorBatch& batch) override;
  Status drop(std::string_view name) override;
  Result<std::vector<Hit>> search(std::string_view name, std::span<const float> vector, const Filter& filter,
                                  const VectorSearch& how) const override;
  bool has(std::string_view name) const override { return find(name) != nullptr; }
  std::vector<SpaceStatus> spaces() const override;
  std::vector<std::string> spaces_with(ChunkId chunk) const override;

  Status erase_for_good();

 private:
  std::vector<std::shared_ptr<Space>> all() const;
  using Moment = std::shared_ptr<const RecordStore::Moment>;

  std::shared_ptr<Space> find(std::string_view name) const;
  Result<std::shared_ptr<Space>> make(const VectorBatch& batch) const;
  Status apply(Space& space, bool is_new, const VectorBatch& batch);
  Status commit(const Changes& changes, const ShardHeader& header);
  Moment moment() const;
  void set_moment();

  const std::unique_ptr<RecordStore> store_;

  std::mutex writing_;  // held by the writer; guards the next two members
  ShardHeader header_;
  std::optional<Error> broken_;  // set after a failed write, when the state on disk is unknown

  mutable std::mutex map_;  // guards the next two members
  Spaces spaces_;
  Moment moment_;  // the state on disk that matches memory

  SpaceLock history_;  // read: while a moment is held; write: ensures that no old moment is held
};

std::shared_ptr<Space> StoredVectorShard::find(std::string_view name) const {
  const std::lock_guard guard(map_);
  const auto found = spaces_.find(name);
  return found == spaces_.end() ? nullptr : found->second;
}

StoredVectorShard::Moment StoredVectorShard::moment() const {
  const std::lock_guard guard(map_);
  return moment_;
}

void StoredVectorShard::set_moment() {
  Moment now = store_->now();
  const std::lock_guard guard(map_);
  moment_.swap(now);
}

Result<std::shared_ptr<Space>> StoredVectorShard::make(const VectorBatch& batch) const {
  if (batch.space.empty() || batch.space.size() > limits::vector_space_name_bytes_max) {
    return Error(Errc::invalid_argument,
                 "a vector space's name has 1 to " + std::to_string(limits::vector_space_name_bytes_max) + " bytes");
  }
  if (batch.dimension == 0 || batch.dimension > limits::vector_dimensions_max) {
    return Error(Errc::invalid_argument, "vector space " + batch.space + ": 1 to " +
                                             std::to_string(limits::vector_dimensions_max) + " dimensions");
  }
  SpaceHeader header;
  header.number = header_.next_number;
  header.name = batch.space;
  header.dimension = static_cast<std::uint32_t>(batch.dimension);
  return std::make_shared<Space>(std::move(header));
}

Status StoredVectorShard::write(const VectorBatch& batch) {
  const std::lock_guard guard(writing_);
  if (broken_) return *broken_;
  std::shared_ptr<Space> space = find(batch.space);
  const bool is_new = space == nullptr;
  if (is_new) {
    ASSIGN_OR_RETURN(space, make(batch));
  }
  RETURN_IF_ERROR(check_batch(batch, space->header));
  RETURN_IF_ERROR(apply(*space, is_new, batch));
  if (is_new) {
    const std::lock_guard map_guard(map_);
    spaces_.emplace(batch.space, std::move(space));
  }
  return erase_for_good();
}

Status StoredVectorShard::apply(Space& space, bool is_new, const VectorBatch& batch) {
  const std::string key = header_key(space.header.number);
  const std::string before = encode(space.header);
  Changes changes;
  Advance advance(*store_, space, batch);
  RETURN_IF_ERROR(advance.plan(changes));
  ShardHeader shard = header_;
  if (is_new) {
    ++shard.next_number;
    ++shard.spaces;
  } else {
    shard.headers_digest -= record_hash(key, before);
  }
  shard.headers_digest += record_hash(key, encode(advance.header()));
  if (advance.erases()) shard.erasing = 1;
  changes.put(shard_key(), encode(shard));
  RETURN_IF_ERROR(commit(changes, shard));
  const auto locked = space.lock.write();
  advance.install();
  set_moment();
  return success();
}

// Removed records leave the disk before the write returns or, after a crash in between, before the next open returns.
Status StoredVectorShard::erase_for_good() {
  if (header_.erasing == 0) return success();
  { const auto nobody_reads_what_was = history_.write(); }
  RETURN_IF_ERROR(store_->erase_for_good());
  ShardHeader shard = header_;
  shard.erasing = 0;
  Changes changes;
  changes.put(shard_key(), encode(shard));
  return commit(changes, shard);
}

Status StoredVectorShard::commit(const Changes& changes, const ShardHeader& header) {
  if (Status written = store_->write(changes); !written) {
    broken_ = written.error();
    return written;
  }
  header_ = header;
  return success();
}

Status StoredVectorShard::drop(std::string_view name) {
  const std::lock_guard guard(writing_);
  if (broken_) return *broken_;
  const std::shared_ptr<Space> space = find(name);
  if (!space) return success();
  const std::uint32_t number = space->header.number;
  ShardHeader shard = header_;
  --shard.spaces;
  shard.erasing = 1;
  shard.headers_digest -= record_hash(header_key(number), encode(space->header));
  Changes changes;
  changes.remove_range(space_begin(number), space_end(number));
  changes.put(shard_key(), encode(shard));
  RETURN_IF_ERROR(commit(changes, shard));
  {
    const std::lock_guard map_guard(map_);
    spaces_.erase(spaces_.find(name));
  }
  set_moment();
  return erase_for_good();
}

Result<std::vector<Hit>> StoredVectorShard::search(std::string_view name, std::span<const float> vector,
                                                   const Filter& filter, const VectorSearch& how) const {
  const std::shared_ptr<Space> space = find(name);
  if (!space) return std::vector<Hit>();
  if (vector.size() != space->dimension()) {
    return Error(Errc::invalid_argument, "vector space " + std::string(name) + " has " +
                                             std::to_string(space->dimension()) + " dimensions, not " +
                                             std::to_string(vector.size()));
  }
  if (!std::all_of(vector.begin(), vector.end(), [](float value) { return std::isfinite(value); })) {
    return Error(Errc::invalid_argument, "the query vector is not finite");
  }
  const Probe probe = make_probe(vector);
  if (probe.scale == 0 || how.k == 0) return std::vector<Hit>();
  const CompiledFilter compiled(filter);
  BestChunks best(how.k);
  if (!filter.as_of) {
    const auto locked = space->lock.read();
    search_live(*space, probe, compiled, how, best);
  } else {
    const auto held = history_.read();
    Moment at;
    {
      const auto locked = space->lock.read();
      search_live(*space, probe, compiled, how, best);
      at = moment();
    }
    RETURN_IF_ERROR(check_history(*store_, at.get(), *space));
    RETURN_IF_ERROR(search_history(*store_, *at, *space, probe, compiled, best));
  }
  std::vector<Hit> hits;
  for (const auto& chunk : std::move(best).sorted())
    hits.push_back({chunk.id, double{chunk.score} * double{probe.scale}});
  return hits;
}

std::vector<std::shared_ptr<Space>> StoredVectorShard::all() const {
  std::vector<std::shared_ptr<Space>> spaces;
  const std::lock_guard guard(map_);
  for (const auto& [name, space] : spaces_) spaces.push_back(space);
  return spaces;
}

std::vector<std::string> StoredVectorShard::spaces_with(ChunkId chunk) const {
  std::vector<std::string> names;
  for (const auto& space : all()) {
    const auto locked = space->lock.read();
    if (space->slot_of(chunk) != no_slot) names.push_back(space->name());
  }
  return names;
}

std::vector<SpaceStatus> StoredVectorShard::spaces() const {
  std::vector<SpaceStatus> statuses;
  for (const auto& space : all()) {
    const auto locked = space->lock.read();
    const SpaceHeader& header = space->header;
    statuses.push_back({header.name, header.dimension, header.next_seq, header.vectors,
                        static_cast<std::int64_t>(header.closed), static_cast<std::int64_t>(space->bytes())});
  }
  return statuses;
}

}  // namespace

Result<std::unique_ptr<VectorShard>> VectorShard::open(const std::string& folder) {
  ASSIGN_OR_RETURN(auto store, RecordStore::open(folder));
  if (store->created()) {
    Changes first;
    first.put(shard_key(), encode(ShardHeader()));
    RETURN_IF_ERROR(store->write(first));
  }
  ASSIGN_OR_RETURN(Loaded loaded, load(*store));
  auto shard = std::make_unique<StoredVectorShard>(std::move(store), std::move(loaded));
  RETURN_IF_ERROR(shard->erase_for_good());
  return std::unique_ptr<VectorShard>(std::move(shard));
}

}  // namespace muniment::retrieval
