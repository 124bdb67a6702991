// How many words the chunks have that were asked for lately, for all readers: what Xapian answers by a walk through its
// B-tree for each chunk, and a chunk's words never change. A table of fixed size: a chunk has one place, and pushes out who was there.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "retrieval/facts.hpp"
#include "retrieval/lexical/lexical_index.hpp"

namespace muniment::retrieval {

class WordCounts {
 public:
  // unknown_words: not here.
  std::uint32_t find(ChunkId chunk) const {
    const std::uint64_t entry = entries_[chunk % places].load(std::memory_order_relaxed);
    return entry >> 32 == chunk ? static_cast<std::uint32_t>(entry) : unknown_words;
  }

  void put(ChunkId chunk, std::uint32_t count) {
    entries_[chunk % places].store(std::uint64_t{chunk} << 32 | count, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t places = 1u << 18;  // 2 MiB

  std::array<std::atomic<std::uint64_t>, places> entries_{};  // id, words; ids begin at 1
};

}  // namespace muniment::retrieval
