// Counts the tests of a Go package.
#include "evidence/reports/go_tests.hpp"

#include <string>
#include <string_view>

namespace muniment::evidence::reports {

void GoPackage::begin(std::string_view test) {
  verbose_ = true;
  ++begun_[std::string(test)];
}

void GoPackage::end(std::string_view test, Outcome outcome, Report& report) {
  const auto found = begun_.find(test);
  if (found != begun_.end() && --found->second == 0) begun_.erase(found);
  ++ended_;
  count_test(report.counts, outcome);
  keep_test(report, outcome, test);
  if (outcome == Outcome::failed) ++failed_;
}

bool GoPackage::runs(std::string_view test) const { return begun_.contains(test); }

void GoPackage::close(std::string_view package, bool passed, Report& report) {
  for (const auto& [test, runs] : begun_) {
    count_test(report.counts, Outcome::failed, runs);
    failed_ += runs;
    keep_failure(report, test);
  }
  const std::string name = "the package " + std::string(package.substr(0, test_name_bytes_max));
  if (passed && !begun_.empty()) note_problem(report, name + " passed, and some of its tests have no result");
  if (passed && failed_ > 0) note_problem(report, name + " passed, and some of its tests failed");
  if (!passed && failed_ == 0) {
    count_test(report.counts, Outcome::failed);
    keep_failure(report, package);
  }
  *this = {};
}

}  // namespace muniment::evidence::reports
