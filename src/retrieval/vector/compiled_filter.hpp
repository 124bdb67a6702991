// A filter made ready for one query: labels as hashes, and for a space the bitmap of what passes.
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

  // Every live vector passes.
  bool passes_all() const { return all_of_.empty() && none_of_.empty() && !after_us_ && !before_us_ && !as_of_; }
  const std::optional<std::int64_t>& as_of() const { return as_of_; }

  // The live slots that pass. Under the space's lock.
  Bitmap live_slots(const Space& space) const;
  // Whether a vector passes that is closed at `valid_to`.
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
