// Queries git about a working tree. Every function returns nullopt or an empty result without git or a tree.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muniment::cli {

// Runs `git -C <folder> <words…>` and returns its output; nullopt if git is missing or fails.
std::optional<std::string> git_output(const std::string& folder, std::vector<std::string> words);

// Splits a text at NUL bytes.
std::vector<std::string> split_at_nul(const std::string& text);

// Returns the commit of a tree digest "git:<commit> sha256:…"; empty if there is none.
std::string commit_of(const std::string& tree_digest);

}  // namespace muniment::cli
