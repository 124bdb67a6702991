// Reads the outcome that a text in an unknown format states: counts in summary lines, an exit status, "no tests ran", a
// mark of truncation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muniment::evidence::completion {

struct Summary {
  std::optional<std::int64_t> passed, failed, skipped, ran;  // each value is from the last summary line with this count
  std::optional<std::int64_t> exit_status;                   // last stated value
  bool no_tests = false;                                     // "no tests ran", "no test files"
  bool says_failed = false;                                  // "FAILED (failures=2)", "BUILD FAILED"
  bool disagrees = false;                                    // "Tests: 6 passed, 9 total"
  bool cut = false;                                          // "[output truncated]", "<snip>"
  std::size_t test_lines = 0;                                // lines with the outcome of one test
  std::size_t other_lines = 0;
  bool open_ended = false;      // the text ends within the line of a test
  std::size_t shell_lines = 0;  // "$ pytest -q"
  bool prints_only = false;     // the commands of all such lines only print
  bool masks_status = false;    // "$ pytest || true"
};

Summary summary_of(std::string_view text);

}  // namespace muniment::evidence::completion
