// Limits the calls of cloud services.
#include "bridge/cloud/call_gate.hpp"

#include <algorithm>

#include "base/limits.hpp"

namespace muniment::bridge {
namespace {

constexpr std::chrono::hours budget_window{24};
constexpr std::chrono::minutes rate_window{1};

}  // namespace

std::string_view CallGate::admit(const std::string& provider, std::size_t bytes, Monotonic now) {
  const std::lock_guard lock(mutex_);
  Provider& of = providers_[provider];
  while (!of.calls.empty() && of.calls.front().at + budget_window <= now) of.calls.pop_front();
  std::int64_t used = static_cast<std::int64_t>(bytes), recent = 0;
  for (const Sent& call : of.calls) {
    used += call.bytes;
    if (call.at + rate_window > now) ++recent;
  }
  if (static_cast<std::int64_t>(of.calls.size()) >= limits_.calls_day) return "budget_calls";
  if (used > limits_.bytes_day) return "budget_bytes";
  if (recent >= limits_.calls_minute) return "rate";
  if (now < of.closed_until) return "breaker";
  // One call tries the provider again; the others wait for its end.
  if (of.failures >= limits::cloud_failures_max)
    of.closed_until = now + std::chrono::seconds(limits::cloud_breaker_seconds);
  of.calls.push_back({now, static_cast<std::int64_t>(bytes)});
  return {};
}

void CallGate::ended(const std::string& provider, bool succeeded, std::size_t bytes, Monotonic now) {
  const std::lock_guard lock(mutex_);
  Provider& of = providers_[provider];
  if (!of.calls.empty()) of.calls.back().bytes += static_cast<std::int64_t>(bytes);
  of.failures = succeeded ? 0 : of.failures + 1;
  of.closed_until = of.failures < limits::cloud_failures_max
                        ? Monotonic()
                        : now + std::chrono::seconds(limits::cloud_breaker_seconds);
}

void CallGate::count(const std::string& provider, std::size_t bytes, Monotonic at) {
  const std::lock_guard lock(mutex_);
  auto& calls = providers_[provider].calls;
  const auto place = std::find_if(calls.begin(), calls.end(), [&](const Sent& call) { return call.at > at; });
  calls.insert(place, {at, static_cast<std::int64_t>(bytes)});
}

}  // namespace muniment::bridge
