#include "store/append/tail.hpp"

#include <algorithm>
#include <thread>

namespace muniment::store {
namespace {

constexpr std::chrono::milliseconds decided_step{2};

std::size_t weight(const events::Event& event) { return sizeof(events::Event) + (event.body ? event.body->size() : 0); }

}  // namespace

std::optional<std::vector<EventPtr>> Tail::read(std::int64_t from_seq, std::size_t limit) const {
  std::lock_guard lock(mutex_);
  if (from_seq >= next_seq_) return std::vector<EventPtr>{};
  const std::int64_t oldest = next_seq_ - static_cast<std::int64_t>(events_.size());
  if (from_seq < oldest) return std::nullopt;
  const auto first = events_.begin() + (from_seq - oldest);
  const auto count = std::min<std::int64_t>(static_cast<std::int64_t>(limit), next_seq_ - from_seq);
  return std::vector<EventPtr>(first, first + count);
}

std::int64_t Tail::next_seq() const {
  std::lock_guard lock(mutex_);
  return next_seq_;
}

bool Tail::wait(std::int64_t from_seq, std::chrono::milliseconds at_most) const {
  const std::atomic<bool> never{false};
  return wait(from_seq, at_most, never);
}

bool Tail::wait(std::int64_t from_seq, std::chrono::milliseconds at_most, const std::atomic<bool>& called) const {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return closed_ || next_seq_ > from_seq || called.load(); };
  if (at_most == std::chrono::milliseconds::max()) {
    changed_.wait(lock, ready);
  } else {
    changed_.wait_for(lock, at_most, ready);
  }
  return next_seq_ > from_seq;
}

void Tail::wake() const {
  // Acquiring the lock ensures that a waiter either sees the flag or is asleep and receives the notification.
  { std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

void Tail::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

bool Tail::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

bool Tail::decided(Time time, Deadline until) const {
  while (undecided_from_.load() <= time.micros) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(decided_step);
  }
  return true;
}

void Tail::erase(std::span<const std::int64_t> seqs) {
  std::lock_guard lock(mutex_);
  for (EventPtr& held : events_) {
    if (!held->body || !std::ranges::binary_search(seqs, held->seq)) continue;
    auto erased = std::make_shared<events::Event>(*held);
    erased->body.reset();
    erased->salt.reset();
    bytes_ -= weight(*held);
    bytes_ += weight(*erased);
    held = std::move(erased);
  }
}

void Tail::start_at(std::int64_t next_seq) {
  std::lock_guard lock(mutex_);
  next_seq_ = next_seq;
}

void Tail::publish(std::vector<EventPtr> batch) {
  std::int64_t size = 0;
  {
    std::lock_guard lock(mutex_);
    for (EventPtr& event : batch) {
      bytes_ += weight(*event);
      next_seq_ = event->seq + 1;
      events_.push_back(std::move(event));
    }
    while (bytes_ > bytes_max_ && events_.size() > 1) {
      bytes_ -= weight(*events_.front());
      events_.pop_front();
    }
    size = next_seq_;
  }
  changed_.notify_all();
  if (on_commit) on_commit(size);
}

}  // namespace muniment::store
