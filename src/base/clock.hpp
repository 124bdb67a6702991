// Provides time: wall-clock microseconds since the Unix epoch for recorded times, and a monotonic clock for deadlines.
// Functions take a Clock, so that a test can set the time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muniment {

// Microseconds since 1970-01-01T00:00:00Z.
struct Time {
  std::int64_t micros = 0;
  auto operator<=>(const Time&) const = default;
};

using Monotonic = std::chrono::steady_clock::time_point;
using Deadline = Monotonic;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const;
  virtual Monotonic monotonic() const;
  // Returns the time since `began`. Steps of the wall clock do not affect it.
  std::int64_t micros_since(Monotonic began) const;
};

// Formats RFC 3339 in UTC with exactly six fractional digits: "2026-11-21T14:02:11.000123Z".
std::string format_time(Time time);

// Parses RFC 3339 with any offset and up to nine fractional digits (truncated to microseconds), years 0001 to 9999;
// nullopt for any other text.
std::optional<Time> parse_time(std::string_view text);

}  // namespace muniment
