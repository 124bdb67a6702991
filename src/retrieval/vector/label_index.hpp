// The slots of each label. With it, any filter is a few operations on bitmaps.
//
// A label is identified by the first eight bytes of its SHA-256. Its slots are a single number, a sorted list, or, from
// one slot in 32 on, a bitmap: about four bytes for each label of a chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "retrieval/vector/bitmap.hpp"

namespace muniment::retrieval::vec {

std::uint64_t label_hash(std::string_view label);

class LabelIndex {
 public:
  // A slot is added to a label once and removed only if it was added. `slots` is the current number of slots, which
  // decides when a bitmap is smaller than a list.
  void add(std::uint64_t label, Slot slot, std::size_t slots);
  void remove(std::uint64_t label, Slot slot, std::size_t slots);

  // Adds the slots that have the label to `out`, which is large enough.
  void collect(std::uint64_t label, Bitmap& out) const;
  std::size_t bytes() const { return bytes_ + labels_.bucket_count() * sizeof(void*); }

 private:
  struct Many {
    std::vector<Slot> list;  // sorted; empty if `bits` holds them
    Bitmap bits;
    bool dense = false;
  };
  struct Slots {
    std::uint32_t count = 0;
    Slot only = no_slot;  // used if count is 1 and `many` is null
    std::unique_ptr<Many> many;
  };
  static std::size_t bytes_of(const Slots& entry);
  static void insert_into(Many& many, std::uint32_t count, Slot slot, std::size_t slots);
  static void erase_from(Many& many, std::uint32_t count, Slot slot, std::size_t slots);

  std::unordered_map<std::uint64_t, Slots> labels_;
  std::size_t bytes_ = 0;
};

}  // namespace muniment::retrieval::vec
