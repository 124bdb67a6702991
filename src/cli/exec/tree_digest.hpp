// What a working tree is, in one line: the commit, and a digest over the files as they are.
#pragma once

#include <string>

namespace muniment::cli {

// "git:<commit> sha256:<digest>", the digest over the sorted (path, mode, sha256) of every file that
// git tracks or would add; empty outside a git tree. A file that cannot be read counts as absent.
std::string tree_digest(const std::string& folder);

}  // namespace muniment::cli
