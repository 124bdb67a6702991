#include "base/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muniment::metrics {

void Histogram::record(std::int64_t value) {
  const auto bucket = static_cast<std::size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin());
  buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Seen Histogram::seen() const {
  Seen seen;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) {
    seen.counts.push_back(buckets_[i].load(std::memory_order_relaxed));
    seen.count += seen.counts.back();
  }
  seen.sum = sum_.load(std::memory_order_relaxed);
  return seen;
}

Process& process() {
  static Process the_process;
  return the_process;
}

std::string decimal_of(std::int64_t value, std::int64_t unit) {
  std::string text = std::to_string(value / unit);
  std::int64_t rest = value % unit;
  if (rest < 0) {  // the clock was set back
    if (value > -unit) text.insert(0, "-");
    rest = -rest;
  }
  if (rest == 0) return text;
  text += '.';
  for (std::int64_t digit = unit / 10; rest != 0; digit /= 10) {
    text += static_cast<char>('0' + rest / digit);
    rest %= digit;
  }
  return text;
}

std::string label(std::string_view name, std::string_view value) {
  std::string text = fmt::format("{}=\"", name);
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text + '"';
}

void Text::family(std::string_view name, Type type, std::string_view help) {
  constexpr std::string_view types[] = {"counter", "gauge", "histogram"};
  name_ = name.starts_with("process_") ? std::string(name) : "muniment_" + std::string(name);
  fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help,
                 types[static_cast<std::size_t>(type)]);
}

void Text::sample(std::int64_t value, std::string_view labels) { sample_text(std::to_string(value), labels); }

void Text::sample_text(std::string_view value, std::string_view labels) {
  const bool any = !labels.empty();
  fmt::format_to(std::back_inserter(text_), "{}{}{}{} {}\n", name_, any ? "{" : "", labels, any ? "}" : "", value);
}

void Text::histogram(const Histogram& histogram, std::int64_t unit, std::string_view labels) {
  const Histogram::Seen seen = histogram.seen();
  const std::string before = labels.empty() ? std::string() : std::string(labels) + ",";
  const std::string all = labels.empty() ? std::string() : fmt::format("{{{}}}", labels);
  std::int64_t so_far = 0;
  for (std::size_t i = 0; i < seen.counts.size(); ++i) {
    so_far += seen.counts[i];
    const std::string bound = i < histogram.bounds().size() ? decimal_of(histogram.bounds()[i], unit) : "+Inf";
    fmt::format_to(std::back_inserter(text_), "{}_bucket{{{}le=\"{}\"}} {}\n", name_, before, bound, so_far);
  }
  fmt::format_to(std::back_inserter(text_), "{0}_sum{1} {2}\n{0}_count{1} {3}\n", name_, all,
                 decimal_of(seen.sum, unit), seen.count);
}

void Text::counter(std::string_view name, std::string_view help, std::int64_t value) {
  family(name, Type::counter, help);
  sample(value);
}

void Text::gauge(std::string_view name, std::string_view help, std::int64_t value) {
  family(name, Type::gauge, help);
  sample(value);
}

void Text::seconds(std::string_view name, std::string_view help, const Histogram& timed) {
  family(name, Type::histogram, help);
  histogram(timed, 1'000'000);
}

}  // namespace muniment::metrics
