// Tracks which pieces of an artifact a connection has read.
#include "gateway/read/reading.hpp"

#include <utility>

#include "base/limits.hpp"

namespace muniment::gateway {

std::optional<Reading::Place> Reading::goes_on(const std::string& what, std::int64_t offset) {
  const std::lock_guard lock(mutex_);
  if (what_ != what || offsets_.size() >= limits::pieces_per_reading_max || !offsets_.insert(offset).second)
    return std::nullopt;
  return place_;
}

void Reading::begin(std::string what, std::int64_t offset, Place place) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  offsets_ = {offset};
  place_ = place;
}

}  // namespace muniment::gateway
