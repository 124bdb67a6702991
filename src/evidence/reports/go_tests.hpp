// The tests of one Go package, from its console output or its JSON. Each test and each subtest counts, because a
// subtest can pass or fail independently.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "evidence/reports/report.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {

class GoPackage {
 public:
  void begin(std::string_view test);
  void end(std::string_view test, Outcome outcome, Report& report);
  bool runs(std::string_view test) const;
  bool empty() const { return begun_.empty() && ended_ == 0; }
  bool verbose() const { return verbose_; }

  // Ends the package. If it failed, its tests without a result (a panic, a time limit) count as failed; if it passed,
  // they are a problem of the report. A package that fails without a failed test (it does not build) is one failed
  // test.
  void close(std::string_view package, bool passed, Report& report);

 private:
  // Test → number of its runs without a result; an ordered map, so that no choice of names makes it slow.
  std::map<std::string, std::int64_t, std::less<>> begun_;
  std::int64_t ended_ = 0, failed_ = 0;
  bool verbose_ = false;  // the package announces its tests, and therefore also lists those that pass
};

}  // namespace muniment::evidence::reports
