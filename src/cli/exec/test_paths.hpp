// Decides by its path whether a file is a test, configures tests, or documents; and whether a change of a file that
// configures more than tests can change them.
#pragma once

#include <string_view>

namespace muniment::cli {

// Returns whether the path is a test, by the conventions of common test runners.
bool is_test_path(std::string_view path);

// Returns whether the file configures tests, so that each change of it counts.
bool is_test_configuration(std::string_view path);

// Returns whether the file configures tests beside other things, as `diff_configures_tests` decides.
bool may_configure_tests(std::string_view path);

// Returns whether the diff of one file (without lines of context) removes or changes a line, or adds one that mentions
// tests. Each added line of a Makefile counts, because it can change what a test target does. A line in which only
// numbers of versions change does not count.
bool diff_configures_tests(std::string_view diff, std::string_view path);

// Returns whether the file is no program.
bool is_document(std::string_view path);

}  // namespace muniment::cli
