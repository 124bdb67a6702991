// Reads the summary of node's reporters, one count on each line: "tests 8", "suites 2", "pass 6" …,
// "duration_ms 345.3".
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "evidence/reports/report.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {

class NodeSummary {
 public:
  // Reads a line without its mark ("ℹ " or "# "). Returns false if it is not part of a summary.
  bool read(std::string_view line);

  bool complete() const { return ended_; }
  std::int64_t tests() const { return values_[0]; }
  std::int64_t suites() const { return values_[1]; }
  // A cancelled test counts as failed.
  Counts counts() const {
    Counts counts = summed(values_[2], values_[3] + values_[4], values_[5] + values_[6]);
    counts.total = values_[0];
    return counts;
  }

 private:
  static constexpr std::size_t fields = 7;
  std::array<std::int64_t, fields> values_{};
  bool ended_ = false;
};

}  // namespace muniment::evidence::reports
