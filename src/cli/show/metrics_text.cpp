#include "cli/show/metrics_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

bool is_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
  };
  return !text.empty() && !(text.front() >= '0' && text.front() <= '9') && std::ranges::all_of(text, fits);
}

std::optional<double> number_of(std::string_view text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parses the value of a label after its opening quote; `rest` then begins after the closing quote.
std::optional<std::string> quoted(std::string_view& rest) {
  std::string value;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') return value;
    if (c != '\\') {
      value += c;
      continue;
    }
    if (rest.empty() || (rest.front() != '\\' && rest.front() != '"' && rest.front() != 'n')) return std::nullopt;
    value += rest.front() == 'n' ? '\n' : rest.front();
    rest.remove_prefix(1);
  }
  return std::nullopt;
}

// Parses name="value",… after the opening brace; `rest` then begins after the closing brace.
bool take_labels(std::string_view& rest, MetricSample& sample) {
  while (!rest.starts_with('}')) {
    const std::size_t equals = rest.find('=');
    if (equals == std::string_view::npos || !is_name(rest.substr(0, equals))) return false;
    const std::string_view name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    if (!rest.starts_with('"')) return false;
    rest.remove_prefix(1);
    auto value = quoted(rest);
    if (!value) return false;
    sample.labels.emplace_back(name, *std::move(value));
    if (rest.starts_with(',')) rest.remove_prefix(1);
  }
  rest.remove_prefix(1);
  return true;
}

std::optional<MetricSample> sample_of(std::string_view line) {
  MetricSample sample;
  const std::size_t end = line.find_first_of("{ ");
  if (end == std::string_view::npos || !is_name(line.substr(0, end))) return std::nullopt;
  sample.name = line.substr(0, end);
  std::string_view rest = line.substr(end);
  if (rest.starts_with('{')) {
    rest.remove_prefix(1);
    if (!take_labels(rest, sample)) return std::nullopt;
  }
  if (!rest.starts_with(' ')) return std::nullopt;
  const auto value = number_of(rest.substr(1));
  if (!value) return std::nullopt;
  sample.value = *value;
  return sample;
}

}  // namespace

std::string_view MetricSample::label(std::string_view wanted) const {
  const auto found = std::ranges::find(labels, wanted, [](const auto& one) { return std::string_view(one.first); });
  return found == labels.end() ? std::string_view() : std::string_view(found->second);
}

double Distribution::count() const {
  double all = 0;
  for (const auto& [bound, count] : buckets) all += count;
  return all;
}

std::optional<double> Distribution::quantile(double share) const {
  const double wanted = count() * share;
  if (wanted <= 0) return std::nullopt;
  double so_far = 0, from = 0;
  for (const auto& [bound, count] : buckets) {
    if (count > 0 && so_far + count >= wanted) {
      return std::isinf(bound) ? from : from + (bound - from) * (wanted - so_far) / count;
    }
    so_far += count;
    if (!std::isinf(bound)) from = bound;
  }
  return from;
}

Distribution Distribution::since(const Distribution& before) const {
  Distribution newer = *this;
  newer.sum -= before.sum;
  for (auto& [bound, count] : newer.buckets) {
    const auto found = before.buckets.find(bound);
    if (found != before.buckets.end()) count = std::max(count - found->second, 0.0);
  }
  return newer;
}

std::optional<double> Metrics::value(std::string_view name) const {
  const auto found = std::ranges::find_if(
      samples, [&](const MetricSample& sample) { return sample.name == name && sample.labels.empty(); });
  return found == samples.end() ? std::nullopt : std::optional(found->value);
}

std::optional<double> Metrics::value(std::string_view name, std::string_view label, std::string_view is) const {
  const auto found = std::ranges::find_if(
      samples, [&](const MetricSample& sample) { return sample.name == name && sample.label(label) == is; });
  return found == samples.end() ? std::nullopt : std::optional(found->value);
}

double Metrics::sum(std::string_view name, std::string_view label, std::string_view is_not) const {
  double all = 0;
  for (const MetricSample& sample : samples) {
    if (sample.name == name && (label.empty() || sample.label(label) != is_not)) all += sample.value;
  }
  return all;
}

Distribution Metrics::distribution(std::string_view name) const {
  Distribution found;
  const std::string bucket = std::string(name) + "_bucket";
  double before = 0;
  for (const MetricSample& sample : samples) {
    if (sample.name != bucket || sample.labels.size() != 1) continue;
    const auto bound = number_of(sample.label("le"));
    if (!bound) continue;
    found.buckets[*bound] = sample.value - before;
    before = sample.value;
  }
  found.sum = value(std::string(name) + "_sum").value_or(0);
  return found;
}

Result<Metrics> parse_metrics(std::string_view text) {
  Metrics metrics;
  for (std::size_t number = 1; auto line = take_line(text); ++number) {
    if (line->empty() || line->starts_with('#')) continue;
    auto sample = sample_of(*line);
    if (!sample) return Error(Errc::invalid_argument, fmt::format("line {} of the metrics is not a sample", number));
    metrics.samples.push_back(*std::move(sample));
  }
  if (!text.empty()) return Error(Errc::invalid_argument, "the metrics do not end with a line feed");
  return metrics;
}

}  // namespace muniment::cli
