// Collects metrics of the process for server.metrics. Any thread may add. An append takes no lock here: a counter is
// one relaxed atomic, a histogram one for the bucket and one for the sum. A reader sees each number whole, and all of
// them from about the same time.
//
// There is one instance for the process, because the timed code is deep in store/, and a reference through every
// constructor would add no information.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/limits.hpp"

namespace muniment::metrics {

class Counter {
 public:
  void add(std::int64_t more = 1) { value_.fetch_add(more, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

class Gauge {
 public:
  explicit Gauge(std::int64_t value = 0) : value_(value) {}
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(std::int64_t more) { value_.fetch_add(more, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_;
};

// Upper bounds of buckets, ascending, inclusive; after the last one follows +Inf.
using Bounds = std::span<const std::int64_t>;

// Microseconds, shown as seconds, from a commit in memory to one that waits for a disk.
inline constexpr std::int64_t time_bounds[] = {50,      100,       250,       500,       1'000,   2'500,
                                               5'000,   10'000,    25'000,    50'000,    100'000, 250'000,
                                               500'000, 1'000'000, 2'500'000, 10'000'000};
// Fewer buckets, because there are many statements and methods.
inline constexpr std::int64_t coarse_time_bounds[] = {100,    500,     1'000,   5'000,     10'000,
                                                      50'000, 100'000, 500'000, 1'000'000, 5'000'000};
inline constexpr std::int64_t batch_bounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1'024};

class Histogram {
 public:
  static constexpr std::size_t bounds_max = 16;

  // `bounds` must outlive the histogram and have at most bounds_max elements.
  explicit Histogram(Bounds bounds) : bounds_(bounds) {}

  void record(std::int64_t value);
  void record(std::chrono::steady_clock::duration time) {
    record(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  }

  struct Seen {
    std::vector<std::int64_t> counts;  // one for each bucket, not cumulative; the last is +Inf
    std::int64_t count = 0;
    std::int64_t sum = 0;
  };
  Seen seen() const;
  Bounds bounds() const { return bounds_; }

 private:
  const Bounds bounds_;
  std::array<std::atomic<std::int64_t>, bounds_max + 1> buckets_{};
  std::atomic<std::int64_t> sum_{0};
};

// Records the time from its construction to its destruction.
class Timer {
 public:
  explicit Timer(Histogram& histogram) : histogram_(histogram), began_(std::chrono::steady_clock::now()) {}
  ~Timer() { histogram_.record(std::chrono::steady_clock::now() - began_); }
  Timer(const Timer&) = delete;

 private:
  Histogram& histogram_;
  const Monotonic began_;
};

// Members of one kind, distinguished by a name from the code, never by a client's value. Beyond metric_names_max, names
// count as "other". A lookup takes a lock: keep the reference, which stays valid.
template <typename Metric>
class Family {
 public:
  template <typename... Arguments>
  explicit Family(Arguments... arguments)
      : make_([=](std::map<std::string, Metric, std::less<>>& all, std::string_view name) -> Metric& {
          return all.try_emplace(std::string(name), arguments...).first->second;
        }) {}

  Metric& of(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(name);
    if (found != all_.end()) return found->second;
    return make_(all_, all_.size() < limits::metric_names_max ? name : std::string_view("other"));
  }

  // Calls visit(name, metric) in the order of the names.
  template <typename Visit>
  void each(Visit visit) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, metric] : all_) visit(std::string_view(name), metric);
  }

 private:
  std::function<Metric&(std::map<std::string, Metric, std::less<>>&, std::string_view)> make_;
  mutable std::mutex mutex_;
  std::map<std::string, Metric, std::less<>> all_;  // its elements do not move
};

struct Process {
  Histogram append_seconds{time_bounds};         // from a request's line to its receipt
  Histogram append_wait_seconds{time_bounds};    // part of it, until the append thread took the request
  Histogram append_commit_seconds{time_bounds};  // one transaction
  Histogram append_batch_events{batch_bounds};   // events in the transaction
  Histogram artifact_fsync_seconds{time_bounds};
  Counter artifact_written_bytes;
  Histogram snapshot_seconds{time_bounds};  // formatting a state until it can be appended
  Histogram passage_seconds{time_bounds};   // reading a passage and checking its hash
  Histogram pointer_seconds{time_bounds};   // the pointers of one request
  Histogram query_seconds{time_bounds};     // one evidence.retrieve
  // Queries that were answered without a record in the log, because the reply does not wait for the record
  Counter uses_unrecorded;
  Family<Histogram> statements{Bounds(coarse_time_bounds)};
  Family<Gauge> followers;      // the next seq of each
  Gauge search_waiting_chunks;  // chunks that the slow lanes of the search have not embedded
  Gauge connections;
  Gauge subscriptions;
  Gauge workers, workers_busy;
  Gauge workers_wanted;              // requests that wait for a worker
  std::array<Counter, 4> log_lines;  // by LogLevel
};

Process& process();

enum class Type : std::uint8_t { counter, gauge, histogram };

class Text {
 public:
  // Begins a metric: writes HELP and TYPE. Its samples must follow directly. `name`: without "muniment_", except for
  // the standard metrics process_….
  void family(std::string_view name, Type type, std::string_view help);
  void sample(std::int64_t value, std::string_view labels = {});
  void sample_text(std::string_view value, std::string_view labels = {});
  // `unit`: number of recorded units in one displayed unit, 1'000'000 for seconds.
  void histogram(const Histogram& histogram, std::int64_t unit, std::string_view labels = {});

  void counter(std::string_view name, std::string_view help, std::int64_t value);
  void gauge(std::string_view name, std::string_view help, std::int64_t value);
  void seconds(std::string_view name, std::string_view help, const Histogram& histogram);

  std::string text() && { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

// Returns `method="event.append"`, escaped for the format. The caller joins several labels with commas.
std::string label(std::string_view name, std::string_view value);

// Example: 1500 of 1'000'000 → "0.0015", without an exponent and trailing zeros.
std::string decimal_of(std::int64_t value, std::int64_t unit);

}  // namespace muniment::metrics
