// A filter compiled for one query: labels as hashes, and the bitmap of matching slots of a space.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/vector/space.hpp"

namespace muniment::retrieval::vec {

class CompiledFilter {
 public:
  explicit CompiledFilter(const Filter& filter);

  // Returns whether every live vector passes.
  bool passes_all() const { return all_of_.empty() && none_of_.empty() && !after_us_ && !before_us_ && !as_of_; }
  const std::optional<std::int64_t>& as_of() const { return as_of_; }

  // Returns the live slots that pass. The space's lock must be held.
  Bitmap live_slots(const Space& space) const;
  // Returns whether a vector that is closed at `valid_to` passes.
  bool passes_closed(const VectorRecord& record, std::int64_t valid_to) const;

 private:
  bool passes_times(std::int64_t time_us, std::int64_t valid_from) const {
    return (!after_us_ || time_us > *after_us_) && (!before_us_ || time_us < *before_us_) &&
           (!as_of_ || valid_from <= *as_of_);
  }

  std::vector<std::vector<std::uint64_t>> all_of_;
  std::vector<std::uint64_t> none_of_;
  std::optional<std::int64_t> after_us_, before_us_, as_of_;
};

}  // namespace muniment::retrieval::vec
