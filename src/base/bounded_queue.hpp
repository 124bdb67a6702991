// Implements a queue between threads with a fixed limit. A push to a full queue fails immediately instead of waiting,
// so that the caller can report it to its client.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace muniment {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t items_max) : items_max_(items_max) {}

  // Returns false if the queue is full or closed; `item` is then unchanged.
  [[nodiscard]] bool try_push(T&& item) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= items_max_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  // Returns the oldest item and waits for one; nullopt if the queue is closed and empty.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  // Returns all queued items, oldest first, and waits for at least one; empty if the queue is closed and drained.
  std::deque<T> pop_all() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return closed_ || !items_.empty(); });
    return std::exchange(items_, {});
  }

  // As pop_all, but also returns empty at `deadline` (see closed()).
  std::deque<T> pop_all_until(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    ready_.wait_until(lock, deadline, [this] { return closed_ || !items_.empty(); });
    return std::exchange(items_, {});
  }

  // Refuses further items and wakes waiters. Queued items can still be popped.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  const std::size_t items_max_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace muniment
