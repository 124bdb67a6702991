// Passes the spans of a log from the threads that scan them to the thread that joins them in order.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "verify/log/scan.hpp"

namespace muniment::verify {

inline constexpr std::int64_t events_a_span = 8'192;
inline constexpr std::int64_t spans_ahead_a_job = 2;  // spans scanned ahead of the join

// The events in [begin, end).
struct SpanRange {
  std::int64_t begin = 0, end = 0;
};

// Splits [begin, end) into ranges, with a boundary at `border` if it is inside.
inline std::vector<SpanRange> span_ranges(std::int64_t begin, std::int64_t border, std::int64_t end) {
  std::vector<SpanRange> ranges;
  for (std::int64_t next = begin; next < end;) {
    std::int64_t stop = std::min(next + events_a_span, end);
    if (next < border) stop = std::min(stop, border);
    ranges.push_back({next, stop});
    next = stop;
  }
  return ranges;
}

// Hands out spans to the scanning threads and returns their results in order to the joining thread.
class SpanQueue {
 public:
  SpanQueue(std::vector<SpanRange> ranges, unsigned jobs)
      : ranges_(std::move(ranges)),
        spans_(static_cast<std::int64_t>(ranges_.size())),
        ahead_max_(spans_ahead_a_job * jobs) {}

  const SpanRange& range(std::int64_t number) const { return ranges_[static_cast<std::size_t>(number)]; }

  // Returns the next span to scan; nullopt: no more.
  std::optional<std::int64_t> claim() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || claimed_ >= spans_ || claimed_ < joined_ + ahead_max_; });
    if (stopped_ || claimed_ >= spans_) return std::nullopt;
    return claimed_++;
  }

  void put(std::int64_t number, Span span) {
    const std::lock_guard lock(mutex_);
    ready_.emplace(number, std::move(span));
    changed_.notify_all();
  }

  // Returns the next span in order; nullopt: all are joined, or a scan failed.
  std::optional<Span> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || joined_ == spans_ || ready_.contains(joined_); });
    if (stopped_ || joined_ == spans_) return std::nullopt;
    Span span = std::move(ready_.extract(joined_).mapped());
    ++joined_;
    changed_.notify_all();
    return span;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  const std::vector<SpanRange> ranges_;
  const std::int64_t spans_;
  const std::int64_t ahead_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, Span> ready_;
  std::int64_t claimed_ = 0, joined_ = 0;
  bool stopped_ = false;
};

}  // namespace muniment::verify
