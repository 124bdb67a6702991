// A number for each chunk of the index, in memory and shared by all readers: Xapian stores such numbers in lists of all
// chunks, most of which a query would read. A chunk's numbers never change, so entries are never removed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "retrieval/facts.hpp"

namespace muniment::retrieval {

template <typename Number>
class ChunkTable {
 public:
  // 0: unknown
  Number find(ChunkId chunk) const {
    const Block* const block = blocks_[chunk / chunks_of_a_block].load(std::memory_order_acquire);
    return block ? (*block)[chunk % chunks_of_a_block].load(std::memory_order_relaxed) : Number{};
  }

  void put(ChunkId chunk, Number number) {
    std::atomic<Block*>& place = blocks_[chunk / chunks_of_a_block];
    Block* block = place.load(std::memory_order_acquire);
    if (!block) block = make_block(place);
    (*block)[chunk % chunks_of_a_block].store(number, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t chunks_of_a_block = 1u << 16, blocks_max = 1u << 16;  // every value of a ChunkId
  using Block = std::array<std::atomic<Number>, chunks_of_a_block>;

  Block* make_block(std::atomic<Block*>& place) {
    const std::lock_guard lock(making_);
    if (!place.load(std::memory_order_relaxed)) {
      owned_.push_back(std::make_unique<Block>());
      place.store(owned_.back().get(), std::memory_order_release);
    }
    return place.load(std::memory_order_relaxed);
  }

  std::array<std::atomic<Block*>, blocks_max> blocks_{};
  std::mutex making_;
  std::vector<std::unique_ptr<Block>> owned_;
};

struct ChunkTables {
  ChunkTable<std::uint16_t> lengths;  // in words, including the ballast
  // The chunk's time in seconds since 1970; times before that or far after are not stored.
  ChunkTable<std::uint32_t> seconds;

  // Lengths above 65,535 words are stored as 65,535; no chunk is that long (limits::chunk_bytes_max).
  void put_length(ChunkId chunk, std::uint32_t words) {
    lengths.put(chunk,
                static_cast<std::uint16_t>(std::min<std::uint32_t>(words, std::numeric_limits<std::uint16_t>::max())));
  }
  void put_time(ChunkId chunk, std::int64_t time_us) {
    const std::int64_t second = time_us / 1'000'000;
    if (time_us >= 0 && second <= std::numeric_limits<std::uint32_t>::max())
      seconds.put(chunk, static_cast<std::uint32_t>(second));
  }
};

}  // namespace muniment::retrieval
