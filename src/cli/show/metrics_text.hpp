// Parses the subset of the Prometheus text format that server.metrics writes, for `top` and `doctor`.
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
  std::vector<std::pair<std::string, std::string>> labels;  // in original order
  double value = 0;

  std::string_view label(std::string_view wanted) const;  // empty: no such label
};

// A histogram or the difference of two: non-cumulative buckets by upper bound.
struct Distribution {
  std::map<double, double> buckets;
  double sum = 0;

  double count() const;
  // Returns the quantile for a share (0.99), interpolated within a bucket; nullopt without values.
  std::optional<double> quantile(double share) const;
  // Returns the difference since `before`.
  Distribution since(const Distribution& before) const;
};

struct Metrics {
  std::vector<MetricSample> samples;

  // Returns the sample with this name and no labels, or only this label.
  std::optional<double> value(std::string_view name) const;
  std::optional<double> value(std::string_view name, std::string_view label, std::string_view is) const;
  // Returns the sum of all samples with this name except those whose `label` is `is`.
  double sum(std::string_view name, std::string_view label = {}, std::string_view is_not = {}) const;
  Distribution distribution(std::string_view name) const;
};

// Errors: invalid_argument, with the number of the line.
Result<Metrics> parse_metrics(std::string_view text);

}  // namespace muniment::cli
