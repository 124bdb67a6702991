// Questions to git about a working tree. Every function returns nullopt or nothing if there is no git or no tree.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muniment::cli {

// Runs `git -C <folder> <words…>` and returns its output; nullopt if git is missing or fails.
std::optional<std::string> git_output(const std::string& folder, std::vector<std::string> words);

// The parts of a text that ends or separates them with NUL.
std::vector<std::string> split_at_nul(const std::string& text);

// Whether the path is a test, or configures how tests run, by the conventions of the common runners.
bool is_test_path(const std::string& path);
bool is_test_configuration(const std::string& path);

// Tests and their configuration that differ from `commit`: changed and removed tests, and configuration that was added,
// too. A test that was added is none: it can only demand more. At most `paths_max`, in order.
std::vector<std::string> changed_tests(const std::string& folder, const std::string& commit, std::size_t paths_max);

// The commit of a tree digest "git:<commit> sha256:…"; empty where it has none.
std::string commit_of(const std::string& tree_digest);

}  // namespace muniment::cli
