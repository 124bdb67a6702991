// The tests of one Go package, which its console output and its JSON list in the same way: each test and each subtest
// counts, as a subtest can pass or fail by itself.
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

  // The package ends. Tests without a result fail with it (a panic, a time limit), and contradict a package that
  // passed. A package that fails without a failed test (it does not build) is one failed test.
  void close(std::string_view package, bool passed, Report& report);

 private:
  // Test → runs of it without a result; ordered, so that no choice of names makes it slow.
  std::map<std::string, std::int64_t, std::less<>> begun_;
  std::int64_t ended_ = 0, failed_ = 0;
  bool verbose_ = false;  // it announces its tests, and so lists the ones that pass
};

}  // namespace muniment::evidence::reports
