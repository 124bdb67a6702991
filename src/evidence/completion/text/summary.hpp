// What a text says in its own words about how a run ended, for outputs that no parser of reports knows: counts in
// summary lines, an exit status, "no tests ran", a cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muniment::evidence::completion {

struct Summary {
  std::optional<std::int64_t> passed, failed, skipped, ran;  // as the last summary line with the count says
  std::optional<std::int64_t> ran_of_classes, ran_of_all;    // where a runner counts by class, and then all
  std::optional<std::int64_t> exit_status;                   // the last one stated
  bool no_tests = false;                                     // "no tests ran", "no test files"
  bool says_failed = false;                                  // "FAILED (failures=2)", "BUILD FAILED"
  bool disagrees = false;                                    // "Tests: 6 passed, 9 total"
  bool cut = false;                                          // "[output truncated]", "<snip>"
  std::size_t test_lines = 0;                                // lines that state how one test ended
  std::size_t other_lines = 0;
  bool open_ended = false;      // the last line breaks off inside a test's line
  std::size_t shell_lines = 0;  // "$ pytest -q"
  bool prints_only = false;     // every such line only prints
  bool masks_status = false;    // "$ pytest || true"
};

Summary summary_of(std::string_view text);

}  // namespace muniment::evidence::completion
