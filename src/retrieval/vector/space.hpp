// One space in memory: its records in RocksDB, arranged for searching.
//
// A vector has a slot; segments of 1,024 slots hold codes, the links of the graph's bottom level, and the facts, each
// in its own array. A segment never moves. A search reads nothing of an unused slot, so the writer may fill it during
// searches; everything else changes only under the lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/vector/bitmap.hpp"
#include "retrieval/vector/chunk_map.hpp"
#include "retrieval/vector/codes.hpp"
#include "retrieval/vector/label_index.hpp"

namespace muniment::retrieval::vec {

inline constexpr std::size_t links_bottom = 32;  // maximum of links of a node at level 0
inline constexpr std::size_t links_above = 16;   // maximum at each level above
constexpr std::size_t links_max(int level) { return level == 0 ? links_bottom : links_above; }

// A list that ends with no_slot; above level 0 only the first links_above are used.
using Links = std::array<Slot, links_bottom>;

// The stored state of a space beside its vectors; equal to its record on disk.
struct SpaceHeader {
  std::uint32_t number = 0;  // key prefix of the space
  std::string name;
  std::uint32_t dimension = 0;
  std::int64_t next_seq = 0;
  Slot slots = 0;             // upper bound of all slots
  Slot entry = no_slot;       // start of a search of the graph: a node of the highest level
  std::uint32_t vectors = 0;  // number of live vectors, including those without direction
  std::uint64_t closed = 0;
  std::uint64_t live_digest = 0;  // sum of the hashes of all node and link records
  std::uint64_t closed_digest = 0;
};

// A vector's record on disk, without the parts in its key.
struct VectorRecord {
  ChunkId chunk = 0;
  std::uint8_t level = 0;
  float scale = 0;
  std::int64_t time_us = 0;
  std::int64_t valid_from = 0;
  std::vector<std::uint64_t> labels;  // label_hash of each label, ascending, without duplicates
  std::span<const std::int8_t> code;
};

// Many readers and one writer; a waiting writer precedes readers that arrive later.
class SpaceLock {
 public:
  std::shared_lock<std::shared_mutex> read() const {
    const std::lock_guard turn(turn_);
    return std::shared_lock(mutex_);
  }
  std::pair<std::unique_lock<std::mutex>, std::unique_lock<std::shared_mutex>> write() const {
    std::unique_lock turn(turn_);
    std::unique_lock all(mutex_);
    return {std::move(turn), std::move(all)};
  }

 private:
  mutable std::mutex turn_;
  mutable std::shared_mutex mutex_;
};

class Space {
 public:
  explicit Space(SpaceHeader header);

  SpaceLock lock;
  SpaceHeader header;                        // header of the state in memory
  std::atomic<bool> history_checked{false};  // the closed vectors on disk match the header's digest

  // Constant members need no lock.
  std::uint32_t number() const { return number_; }
  const std::string& name() const { return name_; }
  std::size_t dimension() const { return dimension_; }
  std::size_t padded() const { return padded_; }
  const DotKernel& dot() const { return dot_; }
  const Bitmap& used() const { return used_; }
  const Bitmap& live() const { return live_; }
  std::size_t live_count() const { return live_count_; }
  const LabelIndex& labels() const { return labels_; }
  Slot slot_of(ChunkId chunk) const { return chunks_.find(chunk); }

  const std::int8_t* code(Slot slot) const { return segment(slot).codes.get() + (slot % segment_slots) * padded_; }
  std::int8_t* code(Slot slot) { return segment(slot).codes.get() + (slot % segment_slots) * padded_; }
  float scale(Slot slot) const { return segment(slot).scale[slot % segment_slots]; }
  ChunkId chunk(Slot slot) const { return segment(slot).chunk[slot % segment_slots]; }
  int level(Slot slot) const { return segment(slot).level[slot % segment_slots]; }
  std::int64_t time_us(Slot slot) const { return segment(slot).time_us[slot % segment_slots]; }
  std::int64_t valid_from(Slot slot) const { return segment(slot).valid_from[slot % segment_slots]; }
  // Returns the links_max(level) links of a node.
  const Slot* links(Slot slot, int level) const {
    if (level == 0) return segment(slot).bottom[slot % segment_slots].data();
    return above_.find(slot)->second.data() + static_cast<std::size_t>(level - 1) * links_above;
  }

  // Makes room for slots up to `slots`. Takes the lock if data has to move.
  void reserve(Slot slots);
  // Writes the code and its facts into an unused slot.
  void fill(Slot slot, const VectorRecord& record);

  // Puts a filled slot into use, or takes it out of use. The lock must be held, unless no other thread knows the space
  // yet.
  void admit(Slot slot, const VectorRecord& record);
  void release(Slot slot, std::span<const std::uint64_t> labels);
  void set_links(Slot slot, int level, std::span<const Slot> links);

  // Returns the node of the highest level, the lowest slot among equals, without those in `but_not`; no_slot if there
  // is none.
  Slot highest(const Bitmap& but_not) const;
  std::size_t bytes() const;

 private:
  static constexpr std::size_t segment_slots = 1'024;
  struct Segment {
    explicit Segment(std::size_t padded);
    struct Free {
      void operator()(std::int8_t* bytes) const;
    };
    std::unique_ptr<std::int8_t[], Free> codes;
    std::array<Links, segment_slots> bottom;
    std::array<std::int64_t, segment_slots> time_us, valid_from;
    std::array<float, segment_slots> scale;
    std::array<ChunkId, segment_slots> chunk;
    std::array<std::uint8_t, segment_slots> level;
  };
  const Segment& segment(Slot slot) const { return *segments_.data()[slot / segment_slots]; }
  Segment& segment(Slot slot) { return *segments_.data()[slot / segment_slots]; }

  const std::uint32_t number_;
  const std::string name_;
  const std::size_t dimension_, padded_;
  const DotKernel dot_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::unordered_map<Slot, std::vector<Slot>> above_;  // links above level 0, links_above for each level
  std::size_t above_lists_ = 0;
  ChunkMap chunks_;
  Bitmap used_, live_;  // live: in use, with a direction
  std::size_t live_count_ = 0;
  LabelIndex labels_;
};

}  // namespace muniment::retrieval::vec
