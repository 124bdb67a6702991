// Identifies the state of a working tree in one line: the commit and a digest of the files.
#pragma once

#include <string>

namespace muniment::cli {

// Returns "git:<commit> v2 sha256:<digest>", a digest of the sorted (path, mode, sha256) of every file that git tracks
// or would add, without .beads/evidence/*.json; empty outside a git tree. An unreadable file counts as absent. Trees
// with equal digests are equal; the commit only names the base of `changed_tests`. Digests without "v2" are of an
// earlier version, which also covers .beads/evidence.
std::string tree_digest(const std::string& folder);

}  // namespace muniment::cli
