// One advance of one space: planned beside the space, written as one batch, then installed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "retrieval/vector/graph_editor.hpp"
#include "retrieval/vector/records/record_store.hpp"
#include "retrieval/vector/records/records.hpp"
#include "retrieval/vector/space.hpp"
#include "retrieval/vector/vector_shard.hpp"

namespace muniment::retrieval::vec {

// Checks a batch. Errors: invalid_argument, too_large; conflict if the watermark would decrease.
Status check_batch(const VectorBatch& batch, const SpaceHeader& header);

class Advance {
 public:
  Advance(const RecordStore& store, Space& space, const VectorBatch& batch);

  // Adds the changes to write, including the space's header; the caller adds the shard's. Errors: corrupt.
  Status plan(Changes& changes);
  const SpaceHeader& header() const { return header_; }
  // Returns whether something was removed that must leave the disk.
  bool erases() const { return erases_; }
  // Call this after the write, under the space's lock.
  void install();

 private:
  // The fate of one chunk according to the whole batch.
  struct Fate {
    const VectorEntry* add = nullptr;
    std::optional<std::int64_t> close;
    bool remove = false;
  };
  struct Addition {
    Slot slot = no_slot;
    Code code;
    VectorRecord record;
  };

  void gather();
  Slot slots_needed() const;
  Status take_out(ChunkId chunk, const Fate& fate, Changes& changes);
  Status take_out_live(Slot slot, const Fate& fate, Changes& changes);
  Status take_out_closed(ChunkId chunk, Changes& changes);
  void bring_in(ChunkId chunk, const Fate& fate, Changes& changes);
  void put_closed(ChunkId chunk, std::int64_t valid_to, const std::string& value, Changes& changes);
  void write_links(Changes& changes);

  const RecordStore& store_;
  Space& space_;
  const VectorBatch& batch_;
  SpaceHeader header_;             // header after the advance
  std::map<ChunkId, Fate> fates_;  // fates in log order
  std::optional<GraphEditor> graph_;
  Bitmap taken_;  // slots in use, or released by this advance, which searches may still read
  std::vector<Addition> additions_;
  std::vector<std::pair<Slot, std::vector<std::uint64_t>>> releases_;  // released slots with their labels
  bool erases_ = false;
};

}  // namespace muniment::retrieval::vec
