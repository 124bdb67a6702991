#include "store/logs/erasure_gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace muniment::store {

Result<std::int64_t> ErasureGate::pass(Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!closed_) return erasures_;
  if (waiting_ < waiting_max_) {
    ++waiting_;
    const bool opened = opened_.wait_until(lock, deadline, [&] { return !closed_; });
    --waiting_;
    if (opened) return erasures_;
  }
  Error error(
      Errc::unavailable,
      fmt::format("content is being {}, and your event may refer to it; your event was not accepted. Retry in 1 s.",
                  doing_));
  error.retry_after_ms = 1'000;
  return error;
}

void ErasureGate::set_waiting_max(std::size_t most) {
  const std::lock_guard lock(mutex_);
  waiting_max_ = most;
}

Result<std::unique_ptr<ErasureGate::Closed>> ErasureGate::close(const Tail& tail, Deadline deadline,
                                                                std::string_view doing) {
  {
    std::unique_lock lock(mutex_);
    if (!opened_.wait_until(lock, deadline, [&] { return !closed_; })) {
      return Error(Errc::unavailable, "another erasure or archiving is in progress; nothing was started. Try again");
    }
    closed_ = true;
    doing_ = doing;
    ++erasures_;
  }
  auto closed = std::make_unique<Closed>(*this);
  const std::int64_t before = numbered();
  while (tail.next_seq() < std::min(before, numbered())) {  // fewer if some were not committed
    if (std::chrono::steady_clock::now() > deadline)
      return Error(Errc::unavailable, "earlier events are not in the log yet; nothing was started. Try again");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return closed;
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
