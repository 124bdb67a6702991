// Maintains the lists and bitmaps of labels.
#include "retrieval/vector/label_index.hpp"

#include <algorithm>

#include "base/crypto/sha256.hpp"

namespace muniment::retrieval::vec {
namespace {

constexpr std::size_t bits_of_a_listed_slot = 32;  // a list and a bitmap have equal sizes at one slot in 32

}  // namespace

std::uint64_t label_hash(std::string_view label) {
  const Hash hash = sha256(label);
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < 8; ++i) first = first << 8 | hash[i];
  return first;
}

void LabelIndex::add(std::uint64_t label, Slot slot, std::size_t slots) {
  Slots& entry = labels_[label];
  bytes_ -= bytes_of(entry);
  if (entry.count == 0) {
    entry.only = slot;
  } else {
    if (!entry.many) {
      entry.many = std::make_unique<Many>();
      entry.many->list = {entry.only};
    }
    insert_into(*entry.many, entry.count, slot, slots);
  }
  ++entry.count;
  bytes_ += bytes_of(entry);
}

void LabelIndex::insert_into(Many& many, std::uint32_t count, Slot slot, std::size_t slots) {
  if (!many.dense && (count + 1) * bits_of_a_listed_slot > std::max<std::size_t>(slots, 1'024)) {
    many.bits.resize(slots);
    for (const Slot listed : many.list) many.bits.set(listed);
    many.list = {};
    many.dense = true;
  }
  if (many.dense) {
    many.bits.resize(std::max<std::size_t>(slots, slot + 1));
    many.bits.set(slot);
  } else {
    many.list.insert(std::lower_bound(many.list.begin(), many.list.end(), slot), slot);
  }
}

void LabelIndex::remove(std::uint64_t label, Slot slot, std::size_t slots) {
  const auto found = labels_.find(label);
  if (found == labels_.end()) return;
  Slots& entry = found->second;
  bytes_ -= bytes_of(entry);
  if (entry.count == 1) {
    labels_.erase(found);
    return;
  }
  erase_from(*entry.many, entry.count, slot, slots);
  --entry.count;
  bytes_ += bytes_of(entry);
}

// A bitmap becomes a list again at half of the size at which it was created, to avoid frequent conversions.
void LabelIndex::erase_from(Many& many, std::uint32_t count, Slot slot, std::size_t slots) {
  if (!many.dense) {
    many.list.erase(std::lower_bound(many.list.begin(), many.list.end(), slot));
    return;
  }
  many.bits.reset(slot);
  if ((count - 1) * bits_of_a_listed_slot * 2 > slots) return;
  many.bits.each([&](Slot present) { many.list.push_back(present); });
  many.bits = Bitmap();
  many.dense = false;
}

void LabelIndex::collect(std::uint64_t label, Bitmap& out) const {
  const auto found = labels_.find(label);
  if (found == labels_.end()) return;
  const Slots& entry = found->second;
  if (!entry.many) {
    out.set(entry.only);
  } else if (entry.many->dense) {
    out.add(entry.many->bits);
  } else {
    for (const Slot slot : entry.many->list) out.set(slot);
  }
}

std::size_t LabelIndex::bytes_of(const Slots& entry) {
  if (entry.count == 0) return 0;
  const std::size_t node =
      sizeof(std::uint64_t) + sizeof entry + 2 * sizeof(void*);  // sizes of a map entry, its list and its allocation
  return entry.many ? node + sizeof(Many) + entry.many->list.capacity() * sizeof(Slot) + entry.many->bits.bytes()
                    : node;
}

}  // namespace muniment::retrieval::vec
