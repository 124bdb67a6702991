// Compares the tests of a working tree, what configures them and what skips them with an earlier commit.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/exec/git.hpp"

namespace muniment::cli {

inline constexpr std::size_t changed_tests_max = 100;            // paths of each list
inline constexpr std::size_t test_lines_bytes_max = 8 * 1024;    // of the changed lines that are kept
inline constexpr std::size_t skip_file_bytes_max = 1024 * 1024;  // of a new file that is searched for skips
inline constexpr std::size_t skip_files_max = 2'000;             // new files that are searched for skips

struct TestChanges {
  // Changed and removed tests, and changed, removed and added configuration of tests, in order. A test file that is
  // new, or to which tests were only added, is not listed, since it cannot weaken the checks.
  std::vector<std::string> paths;
  // The lines of the changed tests that were removed (-) and added (+), each file after its path; cut at
  // test_lines_bytes_max.
  std::string lines;
  std::vector<std::string> skips;  // other files that gained more lines that skip tests than they lost
};

// Returns the changes since the commit; empty without git, a tree or a commit. A file that git is told to ignore and
// that configures tests counts if it is newer than the task.
TestChanges test_changes(const std::string& folder, const TaskBase& base);

}  // namespace muniment::cli
