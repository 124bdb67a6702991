#include "base/clock.hpp"

#include <fmt/format.h>

namespace muniment {
namespace {

constexpr std::int64_t micros_per_second = 1'000'000;
constexpr std::int64_t micros_per_day = 86'400 * micros_per_second;
constexpr std::int64_t year_1 = -62'135'596'800 * micros_per_second;      // 0001-01-01T00:00:00Z
constexpr std::int64_t year_10000 = 253'402'300'800 * micros_per_second;  // one past the last

// Parses RFC 3339 from left to right; any mismatch fails the whole text.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : rest_(text) {}

  // Parses exactly `width` digits.
  std::optional<int> digits(std::size_t width) {
    if (rest_.size() < width) return std::nullopt;
    int value = 0;
    for (char c : rest_.substr(0, width)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(width);
    return value;
  }

  bool one_of(std::string_view allowed) {
    if (rest_.empty() || allowed.find(rest_.front()) == std::string_view::npos) return false;
    last_ = rest_.front();
    rest_.remove_prefix(1);
    return true;
  }

  // Parses one to nine digits, truncated to microseconds.
  std::optional<std::int64_t> fraction() {
    std::int64_t micros = 0;
    std::size_t count = 0;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      if (++count > 9) return std::nullopt;
      if (count <= 6) micros = micros * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    if (count == 0) return std::nullopt;
    for (; count < 6; ++count) micros *= 10;
    return micros;
  }

  char last() const { return last_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  char last_ = 0;
};

std::optional<std::int64_t> read_date(TimeReader& reader) {
  const auto year = reader.digits(4);
  if (!year || !reader.one_of("-")) return std::nullopt;
  const auto month = reader.digits(2);
  if (!month || !reader.one_of("-")) return std::nullopt;
  const auto day = reader.digits(2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return std::nullopt;
  return std::int64_t{std::chrono::sys_days{date}.time_since_epoch().count()} * micros_per_day;
}

std::optional<std::int64_t> read_time_of_day(TimeReader& reader) {
  const auto hour = reader.digits(2);
  if (!hour || *hour > 23 || !reader.one_of(":")) return std::nullopt;
  const auto minute = reader.digits(2);
  if (!minute || *minute > 59 || !reader.one_of(":")) return std::nullopt;
  const auto second = reader.digits(2);
  const int last_second = *minute == 59 ? 60 : 59;  // a leap second becomes the first second of the next minute
  if (!second || *second > last_second) return std::nullopt;
  std::int64_t micros = 0;
  if (reader.one_of(".")) {
    const auto fraction = reader.fraction();
    if (!fraction) return std::nullopt;
    micros = *fraction;
  }
  return (std::int64_t{*hour} * 3600 + *minute * 60 + *second) * micros_per_second + micros;
}

std::optional<std::int64_t> read_offset(TimeReader& reader) {
  if (reader.one_of("Zz")) return 0;
  if (!reader.one_of("+-")) return std::nullopt;
  const int sign = reader.last() == '-' ? -1 : 1;
  const auto hours = reader.digits(2);
  if (!hours || *hours > 23 || !reader.one_of(":")) return std::nullopt;
  const auto minutes = reader.digits(2);
  if (!minutes || *minutes > 59) return std::nullopt;
  return sign * (std::int64_t{*hours} * 3600 + *minutes * 60) * micros_per_second;
}

}  // namespace

Time Clock::now() const {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count()};
}

Monotonic Clock::monotonic() const { return std::chrono::steady_clock::now(); }

std::int64_t Clock::micros_since(Monotonic began) const {
  return std::chrono::duration_cast<std::chrono::microseconds>(monotonic() - began).count();
}

std::string format_time(Time time) {
  const std::chrono::sys_time<std::chrono::microseconds> point{std::chrono::microseconds{time.micros}};
  const auto day = std::chrono::floor<std::chrono::days>(point);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{point - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

std::optional<Time> parse_time(std::string_view text) {
  TimeReader reader(text);
  const auto date = read_date(reader);
  if (!date || !reader.one_of("Tt")) return std::nullopt;
  const auto time_of_day = read_time_of_day(reader);
  if (!time_of_day) return std::nullopt;
  const auto offset = read_offset(reader);
  if (!offset || !reader.at_end()) return std::nullopt;
  const std::int64_t micros = *date + *time_of_day - *offset;
  if (micros < year_1 || micros >= year_10000) return std::nullopt;
  return Time{micros};
}

}  // namespace muniment
