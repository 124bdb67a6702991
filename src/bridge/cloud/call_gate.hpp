// Limits the calls of cloud services: a budget of calls and bytes in 24 hours, a rate, and a breaker, each per
// provider.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace muniment::bridge {

struct GateLimits {
  std::int64_t calls_day = 0;  // in 24 hours
  std::int64_t bytes_day = 0;  // sent and received, in 24 hours
  std::int64_t calls_minute = 0;
};

// Any thread.
class CallGate {
 public:
  explicit CallGate(GateLimits limits) : limits_(limits) {}

  // Counts a call that sends `bytes` and returns an empty text, or returns the reason against it: budget_calls,
  // budget_bytes, rate, breaker. The breaker opens after limits::cloud_failures_max failures in a row, and admits one
  // call after limits::cloud_breaker_seconds.
  std::string_view admit(const std::string& provider, std::size_t bytes, Monotonic now);
  // Reports the end of an admitted call, which received `bytes`.
  void ended(const std::string& provider, bool succeeded, std::size_t bytes, Monotonic now);
  // Counts a call of an earlier process, with the bytes of both directions.
  void count(const std::string& provider, std::size_t bytes, Monotonic at);

 private:
  struct Sent {
    Monotonic at;
    std::int64_t bytes = 0;
  };
  struct Provider {
    std::deque<Sent> calls;  // of the last 24 hours, oldest first
    int failures = 0;        // in a row
    Monotonic closed_until{};
  };
  std::mutex mutex_;  // guards providers_
  std::map<std::string, Provider> providers_;
  const GateLimits limits_;
};

}  // namespace muniment::bridge
