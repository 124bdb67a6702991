// Reads Prometheus' text format as far as server.metrics writes it: for `top` and `doctor`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace muniment::cli {

struct MetricSample {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // in their order
  double value = 0;

  std::string_view label(std::string_view wanted) const;  // empty: it has none of that name
};

// A histogram as it stands, or the difference of two: buckets by their upper bound, not cumulative.
struct Distribution {
  std::map<double, double> buckets;
  double sum = 0;

  double count() const;
  // What a share (0.99) of the values stays below, interpolated within a bucket; nullopt: there is none.
  std::optional<double> quantile(double share) const;
  // What came since `before`.
  Distribution since(const Distribution& before) const;
};

struct Metrics {
  std::vector<MetricSample> samples;

  // The sample of that name without labels, or with only this one.
  std::optional<double> value(std::string_view name) const;
  std::optional<double> value(std::string_view name, std::string_view label, std::string_view is) const;
  // The sum of all samples of that name but those whose `label` is `is`.
  double sum(std::string_view name, std::string_view label = {}, std::string_view is_not = {}) const;
  Distribution distribution(std::string_view name) const;
};

// Errors: invalid_argument, with the number of the line.
Result<Metrics> parse_metrics(std::string_view text);

}  // namespace muniment::cli
