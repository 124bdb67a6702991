// Evaluates filters on the vectors of a space.
#include "retrieval/vector/compiled_filter.hpp"

#include <algorithm>
#include <bit>

namespace muniment::retrieval::vec {

CompiledFilter::CompiledFilter(const Filter& filter)
    : after_us_(filter.after_us), before_us_(filter.before_us), as_of_(filter.as_of) {
  for (const auto& group : filter.all_of) {
    auto& hashes = all_of_.emplace_back();
    for (const std::string& label : group) hashes.push_back(label_hash(label));
  }
  for (const std::string& label : filter.none_of) none_of_.push_back(label_hash(label));
}

Bitmap CompiledFilter::live_slots(const Space& space) const {
  Bitmap passing = space.live();
  const std::size_t slots = passing.words() * Bitmap::word_bits;
  for (const auto& group : all_of_) {
    Bitmap labelled(slots);
    for (const std::uint64_t label : group) space.labels().collect(label, labelled);
    passing.keep(labelled);
  }
  if (!none_of_.empty()) {
    Bitmap labelled(slots);
    for (const std::uint64_t label : none_of_) space.labels().collect(label, labelled);
    passing.take(labelled);
  }
  if (!after_us_ && !before_us_ && !as_of_) return passing;
  for (std::size_t i = 0; i < passing.words(); ++i) {
    for (std::uint64_t rest = passing.word(i); rest != 0; rest &= rest - 1) {
      const auto slot = static_cast<Slot>(i * Bitmap::word_bits) + static_cast<Slot>(std::countr_zero(rest));
      if (!passes_times(space.time_us(slot), space.valid_from(slot))) passing.word(i) &= ~(rest & -rest);
    }
  }
  return passing;
}

bool CompiledFilter::passes_closed(const VectorRecord& record, std::int64_t valid_to) const {
  const auto has = [&](std::uint64_t label) {
    return std::binary_search(record.labels.begin(), record.labels.end(), label);
  };
  if (!as_of_ || *as_of_ >= valid_to || !passes_times(record.time_us, record.valid_from)) return false;
  if (std::any_of(none_of_.begin(), none_of_.end(), has)) return false;
  return std::all_of(all_of_.begin(), all_of_.end(),
                     [&](const auto& group) { return std::any_of(group.begin(), group.end(), has); });
}

}  // namespace muniment::retrieval::vec
