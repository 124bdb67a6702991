// A number of each chunk that was asked for lately, for all readers: what Xapian finds by a walk through a B-tree for every
// chunk, and never changes. A table of fixed size: a chunk has one place in it, and pushes out who was there.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "retrieval/facts.hpp"

namespace muniment::retrieval {

class ChunkNumbers {
 public:
  std::optional<std::uint32_t> find(ChunkId chunk) const {
    const std::uint64_t entry = entries_[chunk % places].load(std::memory_order_relaxed);
    return entry >> 32 == chunk ? std::optional(static_cast<std::uint32_t>(entry)) : std::nullopt;
  }

  void put(ChunkId chunk, std::uint32_t number) {
    entries_[chunk % places].store(std::uint64_t{chunk} << 32 | number, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t places = 1u << 18;  // 2 MiB

  std::array<std::atomic<std::uint64_t>, places> entries_{};  // id, number; ids begin at 1
};

}  // namespace muniment::retrieval
