// Stores the vectors, links and facts of a space in segments.
#include "retrieval/vector/space.hpp"

#include <algorithm>
#include <new>

namespace muniment::retrieval::vec {
namespace {

constexpr std::align_val_t cache_line{64};

}  // namespace

// Left uninitialized: a page that no slot has used takes no memory.
Space::Segment::Segment(std::size_t padded)
    : codes(static_cast<std::int8_t*>(::operator new(segment_slots* padded, cache_line))) {}

void Space::Segment::Free::operator()(std::int8_t* bytes) const { ::operator delete(bytes, cache_line); }

Space::Space(SpaceHeader stored)
    : header(std::move(stored)),
      number_(header.number),
      name_(header.name),
      dimension_(header.dimension),
      padded_(padded_size(dimension_)),
      dot_(dot_kernels().front()) {}

void Space::reserve(Slot slots) {
  if (slots <= segments_.size() * segment_slots) return;
  std::vector<std::unique_ptr<Segment>> added;
  while ((segments_.size() + added.size()) * segment_slots < slots)
    added.push_back(std::unique_ptr<Segment>(new Segment(padded_)));
  const auto locked = lock.write();
  for (auto& segment : added) segments_.push_back(std::move(segment));
  used_.resize(segments_.size() * segment_slots);
  live_.resize(segments_.size() * segment_slots);
}

void Space::fill(Slot slot, const VectorRecord& record) {
  Segment& home = segment(slot);
  const std::size_t at = slot % segment_slots;
  std::copy(record.code.begin(), record.code.end(), code(slot));
  home.scale[at] = record.scale;
  home.chunk[at] = record.chunk;
  home.level[at] = record.level;
  home.bottom[at].fill(no_slot);
}

void Space::admit(Slot slot, const VectorRecord& record) {
  Segment& home = segment(slot);
  home.time_us[slot % segment_slots] = record.time_us;
  home.valid_from[slot % segment_slots] = record.valid_from;
  chunks_.insert(record.chunk, slot);
  used_.set(slot);
  header.slots = std::max(header.slots, slot + 1);
  if (record.scale > 0) {
    live_.set(slot);
    ++live_count_;
    if (record.level > 0) above_[slot].assign(record.level * links_above, no_slot);
    above_lists_ += record.level;
  }
  for (const std::uint64_t label : record.labels) labels_.add(label, slot, segments_.size() * segment_slots);
}

void Space::release(Slot slot, std::span<const std::uint64_t> labels) {
  for (const std::uint64_t label : labels) labels_.remove(label, slot, segments_.size() * segment_slots);
  chunks_.erase(chunk(slot));
  used_.reset(slot);
  if (!live_.test(slot)) return;
  live_.reset(slot);
  --live_count_;
  above_.erase(slot);
  above_lists_ -= static_cast<std::size_t>(level(slot));
}

void Space::set_links(Slot slot, int level, std::span<const Slot> links) {
  Slot* out = level == 0 ? segment(slot).bottom[slot % segment_slots].data()
                         : above_.find(slot)->second.data() + static_cast<std::size_t>(level - 1) * links_above;
  std::copy(links.begin(), links.end(), out);
}

Slot Space::highest(const Bitmap& but_not) const {
  Slot best = no_slot;
  for (const auto& [slot, links] : above_) {
    if (but_not.test(slot)) continue;
    if (best == no_slot || level(slot) > level(best) || (level(slot) == level(best) && slot < best)) best = slot;
  }
  if (best != no_slot) return best;
  Bitmap rest = live_;
  rest.take(but_not);
  for (std::size_t i = 0; i < rest.words(); ++i) {
    if (rest.word(i) != 0)
      return static_cast<Slot>(i * Bitmap::word_bits) + static_cast<Slot>(std::countr_zero(rest.word(i)));
  }
  return no_slot;
}

std::size_t Space::bytes() const {
  constexpr std::size_t node = sizeof(Slot) + sizeof(std::vector<Slot>) + 2 * sizeof(void*);
  return segments_.size() * (sizeof(Segment) + segment_slots * padded_) + used_.bytes() + live_.bytes() +
         chunks_.bytes() + labels_.bytes() + above_.bucket_count() * sizeof(void*) + above_.size() * node +
         above_lists_ * links_above * sizeof(Slot);
}

}  // namespace muniment::retrieval::vec
