#include "cli/time_option.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <optional>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view time_forms = "Write an age (90s, 15m, 1h, 2d), a date (2026-01-31) or 2026-01-31T13:30:00Z";

std::optional<std::int64_t> seconds_of_unit(char unit) {
  switch (unit) {
    case 's': return 1;
    case 'm': return 60;
    case 'h': return 3'600;
    case 'd': return 86'400;
    default: return std::nullopt;
  }
}

// Converts "15m" to 900 s before now; nullopt if the text has another form or the time is before the year 1.
std::optional<Time> ago_of(Time now, std::string_view age) {
  const auto seconds = read_duration(age);
  if (!seconds) return std::nullopt;
  return Time{now.micros - *seconds * 1'000'000};
}

std::string replace_by_time(std::string& text) {
  const auto time = read_time(text, Clock().now());
  if (!time) return time.error().message;
  text = *time;
  return {};
}

std::string replace_unless_seq(std::string& text) {
  return parse_decimal(text) ? std::string() : replace_by_time(text);
}

}  // namespace

std::optional<std::int64_t> read_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto unit = seconds_of_unit(text.back());
  const auto count = parse_decimal(text.substr(0, text.size() - 1));
  constexpr std::int64_t seconds_max = std::int64_t{1'000} * 365 * 86'400;
  if (!unit || !count || *count > seconds_max / *unit) return std::nullopt;
  return *count * *unit;
}

Result<std::string> read_time(std::string_view text, Time now) {
  if (const auto time = ago_of(now, text)) return format_time(*time);
  if (parse_time(text)) return std::string(text);
  if (const auto midnight = parse_time(std::string(text) + "T00:00:00Z")) return format_time(*midnight);
  return Error(Errc::invalid_argument, fmt::format("\"{}\" is not a time. {}", text, time_forms));
}

void add_time(CLI::App& command, const std::string& name, std::string& value, const std::string& text) {
  command.add_option(name, value, text)->type_name("TIME")->transform(CLI::Validator(replace_by_time, ""));
}

void add_asof_option(CLI::App& command, std::string& value, const std::string& text) {
  command.add_option("--asof", value, text)->type_name("SEQ|TIME")->transform(CLI::Validator(replace_unless_seq, ""));
}

}  // namespace muniment::cli
