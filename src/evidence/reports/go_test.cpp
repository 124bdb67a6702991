// Reads the console output of `go test`. With -v it lists each test. Without -v a package that passed is one line,
// which counts as one and is no test (`Report::packages`); such a report is not `listed`. Beside packages whose tests
// are listed, such a line counts nothing: its program ended before a test began.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/reports/formats.hpp"
#include "evidence/reports/go_tests.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

enum class GoPackageState : std::uint8_t { passed, failed, without_tests };

struct GoPackageLine {
  std::string_view package;
  GoPackageState state = GoPackageState::passed;
};

std::string_view next_word(std::string_view& text) {
  text = trimmed(text);
  const std::string_view word = first_word(text);
  text.remove_prefix(word.size());
  return word;
}

// "ok  \tPACKAGE\t0.003s", "FAIL\tPACKAGE [build failed]", "?   \tPACKAGE\t[no test files]"
std::optional<GoPackageLine> package_line(std::string_view line) {
  std::string_view rest = line;
  const std::string_view state = first_word(line);
  if (state != "ok" && state != "FAIL" && state != "?") return std::nullopt;
  rest.remove_prefix(state.size());
  if (!rest.starts_with('\t') && !rest.starts_with("  ")) return std::nullopt;  // prose
  GoPackageLine found;
  found.package = next_word(rest);
  const std::string_view behind = trimmed(rest), first = first_word(behind);
  const bool has_duration = first.ends_with("s") && first.find('.') != std::string_view::npos &&
                            is_all_of(first.substr(0, first.size() - 1), "0123456789.");
  const bool without_tests = behind.find("[no test") != std::string_view::npos;  // [no test files], [no tests to run]
  if (state == "?") {
    if (!without_tests) return std::nullopt;
  } else if (state == "ok" ? !has_duration && first != "(cached)" : !has_duration && !behind.ends_with(" failed]")) {
    return std::nullopt;
  }
  found.state = state == "FAIL" ? GoPackageState::failed
                : without_tests ? GoPackageState::without_tests
                                : GoPackageState::passed;
  return found;
}

struct GoResultLine {
  std::string_view test;
  Outcome outcome = Outcome::passed;
  bool at_start = true;  // false: the test printed text without a line feed before the result
};

// "    --- PASS: TestTable/one (0.00s)"
std::optional<GoResultLine> result_line(std::string_view line) {
  const std::size_t mark = line.find("--- ");
  if (mark == std::string_view::npos) return std::nullopt;
  GoResultLine found;
  found.at_start = line.find_first_not_of(' ') == mark;
  line.remove_prefix(mark + 4);
  if (take(line, "FAIL: "))
    found.outcome = Outcome::failed;
  else if (take(line, "SKIP: "))
    found.outcome = Outcome::skipped;
  else if (!take(line, "PASS: "))
    return std::nullopt;
  const std::size_t space = line.find(" (");
  if (space == std::string_view::npos || !trimmed(line).ends_with("s)")) return std::nullopt;
  found.test = line.substr(0, space);
  return found;
}

class GoReader {
 public:
  explicit GoReader(Report& report) : report_(report) {}

  void read(std::string_view line) {
    if (take(line, "=== RUN")) return package_.begin(trimmed(line));
    if (const auto result = result_line(line); result && (result->at_start || package_.runs(result->test))) {
      package_.end(result->test, result->outcome, report_);
      return;
    }
    if (const auto found = package_line(line)) return close(*found);
    if (line == "PASS" || line == "FAIL") binary_end_ = line;
  }

  void finish() {
    // A test binary that runs outside of `go test` ends with PASS or FAIL.
    if (!package_.empty() && !binary_end_.empty())
      close({.package = "", .state = binary_end_ == "PASS" ? GoPackageState::passed : GoPackageState::failed});
    report_.complete = packages_ > 0 && package_.empty();
    report_.listed = all_listed_ && (any_verbose_ || report_.packages == 0);
    if (!any_verbose_) count_test(report_.counts, Outcome::passed, report_.packages);
  }

 private:
  void close(const GoPackageLine& line) {
    ++packages_;
    binary_end_ = {};
    const bool verbose = package_.verbose();
    const bool quiet = package_.empty();
    package_.close(line.package, line.state != GoPackageState::failed, report_);
    if (line.state == GoPackageState::passed && quiet)
      ++report_.packages;
    else if (line.state != GoPackageState::without_tests && !verbose)
      all_listed_ = false;
    any_verbose_ = any_verbose_ || verbose;
  }

  Report& report_;
  GoPackage package_;
  std::string_view binary_end_;
  std::int64_t packages_ = 0;
  bool all_listed_ = true, any_verbose_ = false;
};

}  // namespace

bool recognises_go_test(std::string_view text) {
  return any_line(text, [](std::string_view line) { return line.starts_with("=== RUN   ") || package_line(line); });
}

Result<Report> parse_go_test(std::string_view text) {
  Report report;
  GoReader reader(report);
  Lines lines(text);
  while (const auto line = lines.next()) reader.read(*line);
  reader.finish();
  return report;
}

}  // namespace muniment::evidence::reports
