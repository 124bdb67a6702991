// Maps chunks to slots: open addressing in one array of eight-byte places, at most 3/4 full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/vector/bitmap.hpp"

namespace muniment::retrieval::vec {

class ChunkMap {
 public:
  Slot find(ChunkId chunk) const {
    if (places_.empty()) return no_slot;
    for (std::size_t at = home(chunk);; at = next(at)) {
      if (places_[at].chunk == chunk) return places_[at].slot;
      if (places_[at].chunk == none) return no_slot;
    }
  }

  // Inserts a chunk that is not in the map.
  void insert(ChunkId chunk, Slot slot) {
    if ((count_ + 1) * 4 > places_.size() * 3) grow();
    std::size_t at = home(chunk);
    while (places_[at].chunk != none) at = next(at);
    places_[at] = {chunk, slot};
    ++count_;
  }

  // Erases a chunk that is in the map. Moves later entries up, so that look-ups stay correct without tombstones.
  void erase(ChunkId chunk) {
    std::size_t gap = home(chunk);
    while (places_[gap].chunk != chunk) gap = next(gap);
    for (std::size_t at = next(gap); places_[at].chunk != none; at = next(at)) {
      const std::size_t wanted = home(places_[at].chunk), mask = places_.size() - 1;
      if (((at - wanted) & mask) < ((at - gap) & mask)) continue;  // the entry would move before its home place
      places_[gap] = places_[at];
      gap = at;
    }
    places_[gap] = {};
    --count_;
  }

  std::size_t bytes() const { return places_.capacity() * sizeof(Place); }

 private:
  static constexpr ChunkId none = 0;  // ids begin at 1
  struct Place {
    ChunkId chunk = none;
    Slot slot = no_slot;
  };

  std::size_t home(ChunkId chunk) const { return (chunk * 0x9e37'79b9'7f4a'7c15u >> 32) & (places_.size() - 1); }
  std::size_t next(std::size_t at) const { return (at + 1) & (places_.size() - 1); }

  void grow() {
    std::vector<Place> old = std::exchange(places_, std::vector<Place>(places_.empty() ? 16 : places_.size() * 2));
    count_ = 0;
    for (const Place& place : old) {
      if (place.chunk != none) insert(place.chunk, place.slot);
    }
  }

  std::vector<Place> places_;  // a power of two of them
  std::size_t count_ = 0;
};

}  // namespace muniment::retrieval::vec
