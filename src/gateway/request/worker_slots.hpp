// Bounds how many workers may be busy with one kind of slow work, so that the other requests keep some.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "base/result.hpp"

namespace muniment::gateway {

struct WorkerSlots {
  std::size_t max = 1;
  std::atomic<std::size_t> now = 0;
};

// One slot, until the end of its scope. Any thread.
class WorkerSlot {
 public:
  explicit WorkerSlot(WorkerSlots& slots) : slots_(slots), admitted_(slots.now.fetch_add(1) < slots.max) {}
  ~WorkerSlot() { slots_.now.fetch_sub(1); }
  WorkerSlot(const WorkerSlot&) = delete;
  WorkerSlot& operator=(const WorkerSlot&) = delete;

  // Returns over_budget if all slots were taken. `busy` is the text after their number: "requests already wait for the
  // search indexes".
  Status admitted(const std::string& busy) const {
    if (admitted_) return success();
    Error error(Errc::over_budget, std::to_string(slots_.max) + " " + busy + ", which is the limit. Retry in 100 ms.");
    error.limit = static_cast<std::int64_t>(slots_.max);
    error.retry_after_ms = 100;
    return error;
  }

 private:
  WorkerSlots& slots_;
  const bool admitted_;
};

}  // namespace muniment::gateway
