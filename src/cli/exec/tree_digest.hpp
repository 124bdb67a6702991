// Identifies the state of a working tree in one line: the commit and a digest of the files.
#pragma once

#include <optional>
#include <string>

#include "base/json/json.hpp"

namespace muniment::cli {

// Returns "git:<commit> v3 root:<root> sha256:<digest>": a digest of the sorted (path, mode, sha256) of every file that
// git tracks or would add, without .beads/evidence/*.json; empty outside a git tree. An unreadable file counts as
// absent. Trees with equal digests are equal; the commit only names the base of `changed_tests`, and <root> is the
// beginning of the hash of the tree's path. Earlier versions wrote "v2" without a root, or neither of them.
std::string tree_digest(const std::string& folder);

// Returns the latest commit of the repository, of at most 100 in all branches and reflogs, whose files are those of the
// digest; nullopt if there is none, or the digest is that of an earlier version.
std::optional<std::string> commit_with_digest(const std::string& folder, const std::string& digest);

// Writes the parameters `folder` and `tree_digest` of a request about a task, for the current folder.
void write_working_tree(json::Writer& params);

}  // namespace muniment::cli
