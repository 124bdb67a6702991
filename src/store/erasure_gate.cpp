#include "store/erasure_gate.hpp"

namespace muniment::store {

Result<std::int64_t> ErasureGate::pass(Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (opened_.wait_until(lock, deadline, [&] { return !closed_; })) return erasures_;
  Error error(Errc::unavailable, "something is being erased, and what you record may refer to it; your event was not accepted. Retry in 1 s.");
  error.retry_after_ms = 1'000;
  return error;
}

ErasureGate::Closed::Closed(ErasureGate& gate) : gate_(gate) {
  const std::lock_guard lock(gate_.mutex_);
  gate_.closed_ = true;
  ++gate_.erasures_;
}

ErasureGate::Closed::~Closed() {
  {
    const std::lock_guard lock(gate_.mutex_);
    gate_.closed_ = false;
  }
  gate_.opened_.notify_all();
}

std::int64_t ErasureGate::numbered() const {
  const std::lock_guard lock(mutex_);
  return numbered_;
}

}  // namespace muniment::store
