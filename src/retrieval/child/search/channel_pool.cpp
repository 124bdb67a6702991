// Grants the channels of the search child in order of arrival.
#include "retrieval/child/search/channel_pool.hpp"

#include <algorithm>
#include <utility>

#include "base/limits.hpp"
#include "retrieval/child/search/search_child.hpp"

namespace muniment::retrieval {

Result<ChannelPool::Lease> ChannelPool::take(Deadline deadline, bool alone) {
  std::unique_lock lock(mutex_);
  if (waiting_.size() >= limits::searches_waiting_max) {
    return Error(Errc::unavailable, "too many searches are waiting: " + std::to_string(waiting_.size()));
  }
  Waiter waiter;
  waiter.alone = alone;
  const auto first_new =
      std::find_if(waiting_.begin(), waiting_.end(), [](const Waiter* other) { return !other->alone; });
  const auto place = waiting_.insert(alone ? first_new : waiting_.end(), &waiter);
  grant();
  if (!waiter.ready.wait_until(lock, deadline, [&] { return waiter.granted.has_value(); })) {
    waiting_.erase(place);
    grant();  // later waiters may have waited for this one alone
    return Error(Errc::deadline_exceeded, process_ ? "the deadline passed while other searches ran"
                                                   : "the deadline passed while the search child was restarted");
  }
  return *std::move(waiter.granted);
}

// Grants channels from the head of the queue while possible. The lock must be held.
void ChannelPool::grant() {
  while (!waiting_.empty()) {
    Waiter& next = *waiting_.front();
    if (refusal_) {
      next.granted = *refusal_;
    } else {
      if (!process_ || alone_ || idle_.empty() || (next.alone && in_flight_ > 0)) return;
      next.granted = Lease{process_, idle_.back(), next.alone};
      idle_.pop_back();
      ++in_flight_;
      alone_ = next.alone;
    }
    waiting_.pop_front();
    next.ready.notify_one();
  }
}

void ChannelPool::forget(const Lease& lease) {
  --in_flight_;
  if (lease.alone) alone_ = false;
}

void ChannelPool::give_back(const Lease& lease) {
  const std::lock_guard lock(mutex_);
  if (lease.process != process_) return;
  forget(lease);
  idle_.push_back(lease.channel);
  grant();
}

void ChannelPool::leave_late(Lease lease, Monotonic hangs_at) {
  const std::lock_guard lock(mutex_);
  if (lease.process != process_) return;
  if (lease.alone) alone_ = lease.alone = false;  // its caller has ended: it no longer blocks others
  late_.push_back({std::move(lease), hangs_at});
  grant();
}

void ChannelPool::lose(const Lease& lease) { close(lease.process); }

void ChannelPool::open(std::shared_ptr<SearchProcess> process, std::size_t search_channels) {
  const std::lock_guard lock(mutex_);
  process_ = std::move(process);
  refusal_.reset();
  idle_.clear();
  for (std::size_t i = search_channels; i-- > 0;) idle_.push_back(first_search_channel + i);
  in_flight_ = 0;
  alone_ = false;
  grant();
}

void ChannelPool::close(const std::shared_ptr<SearchProcess>& process) {
  const std::lock_guard lock(mutex_);
  if (process != process_) return;
  process_.reset();
  idle_.clear();
  late_.clear();
}

void ChannelPool::refuse(std::optional<Error> why) {
  const std::lock_guard lock(mutex_);
  refusal_ = std::move(why);
  grant();
}

std::vector<ChannelPool::Late> ChannelPool::take_late() {
  const std::lock_guard lock(mutex_);
  return std::exchange(late_, {});
}

}  // namespace muniment::retrieval
