// What a working tree is, in one line: the commit, and a digest over the files as they are.
#pragma once

#include <string>

namespace muniment::cli {

// "git:<commit> v2 sha256:<digest>", the digest over the sorted (path, mode, sha256) of every file that git tracks or
// would add, without .beads/evidence/*.json; empty outside a git tree. A file that cannot be read counts as absent.
// Two trees are the same if their digests are: the commit names only what `changed_tests` compares with. Digests
// without "v2" are of an earlier version, which also covers .beads/evidence.
std::string tree_digest(const std::string& folder);

}  // namespace muniment::cli
