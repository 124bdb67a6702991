// Runs bd, the command line of the issue tracker Beads, without a shell, with limits of time and output. Its output is
// not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct BdProgram {
  std::string path;  // a path, or a name that is searched in PATH
  std::int64_t seconds_max = limits::bd_seconds_default;
};

// Runs the program with these words and --json, and returns its standard output. Processes that it leaves behind keep
// running unless a limit was exceeded. Errors: not_found if the program does not exist; conflict if it fails, with its
// message; deadline_exceeded and too_large if it exceeded a limit and was killed with its process group.
Result<std::string> run_bd(const BdProgram& program, std::vector<std::string> words);

}  // namespace muniment::cli
