// Plans the changes of one batch to one space, and installs them.
#include "retrieval/vector/advance.hpp"

#include <algorithm>
#include <cmath>

#include "base/limits.hpp"
#include "retrieval/vector/records/history.hpp"

namespace muniment::retrieval::vec {
namespace {

std::vector<std::uint64_t> label_hashes(const std::vector<std::string>& labels) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(labels.size());
  for (const std::string& label : labels) hashes.push_back(label_hash(label));
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  return hashes;
}

Error lost(const SpaceHeader& header, ChunkId chunk) {
  return Error(Errc::corrupt, "the vector space " + header.name + " has lost chunk " + std::to_string(chunk));
}

}  // namespace

Status check_batch(const VectorBatch& batch, const SpaceHeader& header) {
  const auto invalid = [&](const std::string& what) {
    return Error(Errc::invalid_argument, "vector space " + batch.space + ": " + what);
  };
  if (batch.dimension != header.dimension) {
    return invalid("it has " + std::to_string(header.dimension) + " dimensions, not " +
                   std::to_string(batch.dimension));
  }
  if (batch.next_seq < header.next_seq) {
    return Error(Errc::conflict, "vector space " + batch.space + ": it has advanced to " +
                                     std::to_string(header.next_seq) + ", past " + std::to_string(batch.next_seq));
  }
  for (const VectorEntry& entry : batch.add) {
    if (entry.id == 0) return invalid("chunk ids begin at 1");
    if (entry.vector.size() != batch.dimension) {
      return invalid("a vector of " + std::to_string(entry.vector.size()) + " dimensions for chunk " +
                     std::to_string(entry.id) + ", not of " + std::to_string(batch.dimension));
    }
    if (!std::all_of(entry.vector.begin(), entry.vector.end(), [](float value) { return std::isfinite(value); })) {
      return invalid("the vector of chunk " + std::to_string(entry.id) + " is not finite");
    }
    if (entry.facts.labels.size() > limits::vector_labels_per_chunk_max) {
      Error error(Errc::too_large, "chunk " + std::to_string(entry.id) + " has " +
                                       std::to_string(entry.facts.labels.size()) + " labels");
      error.limit = limits::vector_labels_per_chunk_max;
      return error;
    }
  }
  return success();
}

Advance::Advance(const RecordStore& store, Space& space, const VectorBatch& batch)
    : store_(store), space_(space), batch_(batch), header_(space.header) {}

Status Advance::plan(Changes& changes) {
  gather();
  header_.next_seq = batch_.next_seq;
  space_.reserve(slots_needed());
  taken_ = space_.used();
  graph_.emplace(space_);
  for (const auto& [chunk, fate] : fates_) RETURN_IF_ERROR(take_out(chunk, fate, changes));
  for (const auto& [chunk, fate] : fates_) {
    if (fate.add != nullptr && !fate.remove) bring_in(chunk, fate, changes);
  }
  for (const Addition& addition : additions_) {
    if (addition.record.scale > 0) graph_->insert(addition.slot);
  }
  write_links(changes);
  header_.entry = graph_->entry();
  changes.put(header_key(header_.number), encode(header_));
  return success();
}

// If a chunk is added twice, its last vector counts.
void Advance::gather() {
  for (const VectorEntry& entry : batch_.add) fates_[entry.id].add = &entry;
  for (const auto& [chunk, valid_to] : batch_.close) {
    if (Fate& fate = fates_[chunk]; !fate.close) fate.close = valid_to;
  }
  for (const ChunkId chunk : batch_.remove) fates_[chunk].remove = true;
}

Slot Advance::slots_needed() const {
  const Slot unused = header_.slots - header_.vectors;
  const auto added = static_cast<Slot>(batch_.add.size());
  return header_.slots + (added > unused ? added - unused : 0);
}

// Takes the shard's vector of the chunk out if it is to be closed, removed or replaced.
Status Advance::take_out(ChunkId chunk, const Fate& fate, Changes& changes) {
  const Slot slot = space_.slot_of(chunk);
  erases_ = erases_ || (fate.remove && (slot != no_slot || header_.closed > 0));
  if (slot != no_slot) return take_out_live(slot, fate, changes);
  if (header_.closed > 0 && (fate.remove || fate.add != nullptr)) return take_out_closed(chunk, changes);
  return success();  // not in this space, or closed before: unchanged
}

Status Advance::take_out_live(Slot slot, const Fate& fate, Changes& changes) {
  const ChunkId chunk = space_.chunk(slot);
  const std::string key = node_key(header_.number, slot);
  ASSIGN_OR_RETURN(const auto value, store_.get(key));
  const auto record = value ? decode_vector(*value, space_.padded()) : std::nullopt;
  if (!record || record->chunk != chunk) return lost(header_, chunk);
  changes.remove(key);
  header_.live_digest -= record_hash(key, *value);
  --header_.vectors;
  releases_.emplace_back(slot, record->labels);
  if (record->scale > 0) {
    for (int level = 0; level <= record->level; ++level) {
      const std::string links = links_key(header_.number, slot, level);
      changes.remove(links);
      header_.live_digest -= record_hash(links, encode_links({space_.links(slot, level), links_max(level)}));
    }
    graph_->erase(slot);
  }
  if (fate.close && !fate.remove && fate.add == nullptr) put_closed(chunk, *fate.close, *value, changes);
  return success();
}

Status Advance::take_out_closed(ChunkId chunk, Changes& changes) {
  RETURN_IF_ERROR(check_history(store_, nullptr, space_));  // a lost record would look like one that never existed
  const std::string closed_at = closed_at_key(header_.number, chunk);
  ASSIGN_OR_RETURN(const auto when, store_.get(closed_at));
  if (!when) return success();
  const auto valid_to = decode_seq(*when);
  const std::string key = history_key(header_.number, valid_to.value_or(0), chunk);
  ASSIGN_OR_RETURN(const auto value, store_.get(key));
  if (!valid_to || !value) return lost(header_, chunk);
  changes.remove(closed_at);
  changes.remove(key);
  header_.closed_digest -= record_hash(closed_at, *when) + record_hash(key, *value);
  --header_.closed;
  return success();
}

void Advance::bring_in(ChunkId chunk, const Fate& fate, Changes& changes) {
  const Facts& facts = fate.add->facts;
  Addition addition;
  addition.code = make_code(fate.add->vector);
  addition.record = {chunk,
                     static_cast<std::uint8_t>(GraphEditor::level_for(chunk)),
                     addition.code.scale,
                     facts.time_us,
                     facts.valid_from,
                     label_hashes(facts.labels),
                     addition.code.bytes};
  const std::string value = encode(addition.record);
  if (const std::int64_t valid_to = fate.close.value_or(facts.valid_to); valid_to != still_valid) {
    put_closed(chunk, valid_to, value, changes);
    return;
  }
  addition.slot = taken_.first_absent(0);
  taken_.set(addition.slot);
  header_.slots = std::max(header_.slots, addition.slot + 1);
  ++header_.vectors;
  space_.fill(addition.slot, addition.record);
  const std::string key = node_key(header_.number, addition.slot);
  changes.put(key, value);
  header_.live_digest += record_hash(key, value);
  additions_.push_back(std::move(addition));
}

void Advance::put_closed(ChunkId chunk, std::int64_t valid_to, const std::string& value, Changes& changes) {
  const std::string key = history_key(header_.number, valid_to, chunk),
                    closed_at = closed_at_key(header_.number, chunk);
  const std::string when = encode_seq(valid_to);
  changes.put(key, value);
  changes.put(closed_at, when);
  header_.closed_digest += record_hash(key, value) + record_hash(closed_at, when);
  ++header_.closed;
}

void Advance::write_links(Changes& changes) {
  for (const GraphEditor::Change& change : graph_->changes()) {
    if (graph_->erased(change.slot)) continue;
    const std::string key = links_key(header_.number, change.slot, change.level);
    const std::string value = encode_links(change.links);
    if (space_.used().test(change.slot)) {
      const std::string before = encode_links({space_.links(change.slot, change.level), links_max(change.level)});
      if (before == value) continue;
      header_.live_digest -= record_hash(key, before);
    }
    changes.put(key, value);
    header_.live_digest += record_hash(key, value);
  }
}

void Advance::install() {
  for (const auto& [slot, labels] : releases_) space_.release(slot, labels);
  for (const Addition& addition : additions_) space_.admit(addition.slot, addition.record);
  for (const GraphEditor::Change& change : graph_->changes()) {
    if (!graph_->erased(change.slot))
      space_.set_links(change.slot, change.level, {change.links.data(), links_max(change.level)});
  }
  space_.header = header_;
}

}  // namespace muniment::retrieval::vec
